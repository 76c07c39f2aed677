"""transformers: twelve architectures forward and backward, generated text, a file that is read."""

import logging
import tempfile

import torch
import transformers as hf
from training import train

logging.disable(logging.WARNING)
SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 48}
LAST = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SHARED = {**SIZES, **LAST, "num_key_value_heads": 2}
TEXT = [
    hf.BertLMHeadModel(hf.BertConfig(**SIZES, is_decoder=True)),
    hf.RobertaForMaskedLM(hf.RobertaConfig(**{**SIZES, **LAST, "pad_token_id": 1})),
    hf.DebertaV2ForMaskedLM(
        hf.DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"])
    ),
    hf.GPT2LMHeadModel(
        hf.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=64, **LAST)
    ),
    hf.LlamaForCausalLM(hf.LlamaConfig(**SHARED)),
    hf.MistralForCausalLM(hf.MistralConfig(**SHARED, sliding_window=4)),
    hf.MixtralForCausalLM(hf.MixtralConfig(**SHARED, num_local_experts=4)),
    hf.Qwen3ForCausalLM(hf.Qwen3Config(**SHARED, head_dim=8)),
    hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**SHARED, head_dim=8)),
    hf.T5ForConditionalGeneration(
        hf.T5Config(
            **{**LAST, "vocab_size": 60, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2},
            num_heads=4,
            decoder_start_token_id=0,
        )
    ),
]


def norms(model, loss):
    loss.backward()
    return [loss, torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None])]


def run():
    tokens = torch.randint(3, 60, (2, 9))
    found = []
    for model in TEXT:
        torch.manual_seed(0)
        model = type(model)(model.config).eval()
        if not isinstance(model, hf.MixtralForCausalLM):  # its experts compute in float32 only
            model = model.double()
        found += norms(model, model(input_ids=tokens, labels=tokens).loss)
    image = hf.ViTConfig(**{**SIZES, "image_size": 32, "patch_size": 8, "num_labels": 3})
    vit = hf.ViTForImageClassification(image).double().eval()
    pictures = torch.rand(2, 3, 32, 32).double()
    found += norms(vit, vit(pixel_values=pictures, labels=torch.tensor([0, 2])).loss)
    sound = hf.Wav2Vec2Config(
        **{**SIZES, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3)},
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    wav2vec = hf.Wav2Vec2ForCTC(sound).double().eval()
    heard = torch.randn(2, 1000).double()
    found += norms(wav2vec, wav2vec(input_values=heard, labels=tokens[:, :5]).loss)
    llama = hf.LlamaForCausalLM(hf.LlamaConfig(**SHARED)).double()
    optimizer = torch.optim.AdamW(llama.parameters(), lr=1e-3)
    schedule = hf.get_cosine_schedule_with_warmup(optimizer, 2, 10)
    found.append(train(llama, lambda: llama(input_ids=tokens, labels=tokens).loss, optimizer))
    schedule.step()
    llama.eval()
    found += [
        llama.generate(tokens[:, :3], max_new_tokens=6, **options)
        for options in ({"do_sample": False}, {"num_beams": 3}, {"do_sample": True, "top_p": 0.9})
    ]
    with tempfile.TemporaryDirectory() as folder:
        llama.save_pretrained(folder)
        again = hf.LlamaForCausalLM.from_pretrained(folder).double().eval()
        found.append(again(tokens).logits)
    return [found, optimizer.param_groups[0]["lr"]]
