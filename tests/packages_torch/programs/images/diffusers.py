"""diffusers: a U-Net with conditions, an autoencoder, schedulers, a pipeline that makes images."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UNet2DConditionModel,
    UNet2DModel,
    UniPCMultistepScheduler,
)
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from training import train


def run():
    blocks = {"block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1}
    image, noise = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16)
    schedule = DDPMScheduler(100, beta_schedule="squaredcos_cap_v2")
    steps = torch.tensor([10, 70])
    noisy = schedule.add_noise(image, noise, steps)
    found = [noisy, schedule.get_velocity(image, noise, steps)]
    torch.set_default_dtype(torch.float64)
    net = UNet2DModel(
        sample_size=16,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4,
        **blocks,
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    rates = get_cosine_schedule_with_warmup(optimizer, 1, 10)
    mean = EMAModel(net.parameters(), decay=0.9)

    def loss():
        rates.step()
        mean.step(net.parameters())
        return torch.nn.functional.mse_loss(net(noisy.double(), steps).sample, noise.double())

    found += train(net, loss, optimizer)
    found += mean.shadow_params
    conditioned = UNet2DConditionModel(
        sample_size=16,
        in_channels=4,
        out_channels=4,
        cross_attention_dim=8,
        attention_head_dim=2,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        **blocks,
    )
    latent, words = torch.randn(1, 4, 8, 8), torch.randn(1, 5, 8)
    found += train(conditioned, lambda: conditioned(latent, 7, words).sample.square().mean())
    coder = AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=2,
        **blocks,
    )

    def rebuilt():
        code = coder.encode(image.double()).latent_dist
        return (coder.decode(code.mode()).sample - image).square().mean() + 0.01 * code.kl().mean()

    found += train(coder, rebuilt)
    torch.set_default_dtype(torch.float32)
    net = net.float().eval()
    for kind in (
        DDPMScheduler,
        DDIMScheduler,
        PNDMScheduler,
        EulerDiscreteScheduler,
        EulerAncestralDiscreteScheduler,
        HeunDiscreteScheduler,
        LMSDiscreteScheduler,
        DPMSolverMultistepScheduler,
        UniPCMultistepScheduler,
        FlowMatchEulerDiscreteScheduler,
    ):
        scheduler = kind(100)
        scheduler.set_timesteps(5)
        sample = noise.clone()
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for step in scheduler.timesteps:
                scaled = getattr(scheduler, "scale_model_input", lambda x, t: x)(sample, step)
                options = {"generator": generator} if kind in (DDPMScheduler,) else {}
                sample = scheduler.step(
                    net(scaled, step).sample, step, sample, **options
                ).prev_sample
        found.append(sample)
    pipeline = DDPMPipeline(net, schedule)
    pipeline.set_progress_bar_config(disable=True)
    drawn = pipeline(
        batch_size=1,
        generator=torch.Generator().manual_seed(3),
        num_inference_steps=4,
        output_type="np",
    )
    return [found, torch.as_tensor(drawn.images)]
