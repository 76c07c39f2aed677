"""tensordict: batches of named tensors, classes of them, modules that read and write them."""

import torch
from tensordict import TensorDict, tensorclass
from tensordict.nn import (
    ProbabilisticTensorDictModule,
    TensorDictModule,
    TensorDictParams,
    TensorDictSequential,
)
from training import small_net, train


@tensorclass
class Sample:
    image: torch.Tensor
    label: torch.Tensor


def batches():
    data = TensorDict({"x": torch.randn(4, 3), "deep": {"y": torch.arange(8).view(4, 2)}}, [4])
    found = [data[1:3], data.view(2, 2).permute(1, 0), data.apply(lambda each: each + 1)]
    found.append(torch.stack([data, data.clone().zero_()], 1))
    found.append(torch.cat([data, data], 0).split(3)[1])
    found.append(data.flatten_keys(".").select("deep.y"))
    data["deep", "z"] = data["x"].sum(-1, keepdim=True)
    found += [data.gather(0, torch.tensor([3, 0])), data.exclude("x"), data * 2]
    samples = Sample(torch.randn(4, 2), torch.arange(4), batch_size=[4])
    found.append([samples[:2].image, samples.reshape(2, 2).label, torch.stack([samples] * 2).label])
    return [each.to_dict() if hasattr(each, "to_dict") else each for each in found]


def run():
    net = small_net()
    model = TensorDictSequential(
        TensorDictModule(net, in_keys=["x"], out_keys=["hidden"]),
        TensorDictModule(lambda h: (h, h.exp()), in_keys=["hidden"], out_keys=["loc", "scale"]),
        ProbabilisticTensorDictModule(
            in_keys=["loc", "scale"],
            out_keys=["action"],
            distribution_class=torch.distributions.Normal,
            default_interaction_type="mean",
        ),
    )
    data = TensorDict({"x": torch.randn(5, 4)}, [5])
    found = [batches(), train(model, lambda: model(data.clone())["action"].square().mean())]
    params = TensorDict.from_module(net)
    with (params * 0.5).to_module(net):
        found.append(net(data["x"]))
    found.append(net(data["x"]))
    several = torch.stack([params.data, params.data * 2], 0)

    def call(weights, x):
        with weights.to_module(net):
            return net(x)

    found.append(torch.vmap(call, (0, None))(several, data["x"]))
    kept = TensorDictParams(TensorDict({"w": torch.nn.Parameter(torch.ones(2))}, []))
    return [found, list(kept.parameters()), sorted(map(len, params.flatten_keys(".").keys()))]
