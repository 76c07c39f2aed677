"""torch-geometric: graph networks by convolution and by attention, on batches of graphs."""

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, global_mean_pool
from torch_geometric.utils import degree, softmax, to_dense_adj
from training import train


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(5, 8)
        self.second = GATConv(8, 4, heads=2)
        self.third = GINConv(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()))
        self.last = torch.nn.Linear(8, 3)

    def forward(self, graphs):
        x = self.first(graphs.x, graphs.edge_index).relu()
        x = self.second(x, graphs.edge_index).tanh()
        return self.last(global_mean_pool(self.third(x, graphs.edge_index), graphs.batch))


def run():
    graphs = Batch.from_data_list(
        [Data(torch.randn(n, 5), torch.randint(0, n, (2, 3 * n))) for n in (4, 6, 5)]
    )
    net, labels = Net(), torch.tensor([0, 2, 1])
    return [
        degree(graphs.edge_index[0], graphs.num_nodes),
        softmax(graphs.x, graphs.batch),
        to_dense_adj(graphs.edge_index, graphs.batch),
        train(net, lambda: torch.nn.functional.cross_entropy(net(graphs), labels)),
    ]
