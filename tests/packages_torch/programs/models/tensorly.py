"""tensorly with its backend of PyTorch: CP, Tucker and tensor trains, also with gradients."""

import tensorly
import torch
from tensorly import decomposition, tenalg
from training import train


def run():
    tensorly.set_backend("pytorch")
    data = torch.rand(5, 6, 4, dtype=torch.float64)
    found = []
    weights, factors = decomposition.parafac(data, 3, n_iter_max=20, init="random", random_state=1)
    found += [weights, factors]
    core, factors = decomposition.tucker(data, [2, 3, 2], n_iter_max=5)
    found.append(tensorly.tucker_to_tensor((core, factors)))
    train_cores = decomposition.tensor_train(data, [1, 3, 2, 1])
    found.append(tensorly.tt_to_tensor(train_cores))
    parts = decomposition.non_negative_parafac(
        data, 2, n_iter_max=10, init="random", random_state=2
    )
    found.append(tensorly.cp_to_tensor(parts))
    model = torch.nn.ParameterList(
        [torch.nn.Parameter(torch.rand(size, 2, dtype=torch.float64)) for size in data.shape]
    )

    def loss():
        return tensorly.norm(tensorly.cp_to_tensor((None, list(model))) - data, 2)

    found += train(model, loss, torch.optim.Adam(model.parameters(), lr=0.05))
    found += [tenalg.khatri_rao(list(model)), tenalg.mode_dot(data, torch.rand(3, 6).double(), 1)]
    return [found, tensorly.unfold(data, 1)]
