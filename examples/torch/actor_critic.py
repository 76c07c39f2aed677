"""Actor-critic on a cart with a pole: Categorical, advantages, one network with two heads."""

import argparse
import math
from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class CartPole:
    """A pole on a cart; pushes to the left or right keep it upright. Each step gives one point."""

    gravity, pole_mass, mass, half_length, force, seconds = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02

    def reset(self):
        self.state = (torch.rand(4) * 0.1 - 0.05).tolist()
        return list(self.state)

    def step(self, action):
        x, speed, angle, spin = self.state
        force = self.force if action == 1 else -self.force
        sine, cosine = math.sin(angle), math.cos(angle)
        moment = self.pole_mass * self.half_length
        pushed = (force + moment * spin**2 * sine) / self.mass
        turned = (self.gravity * sine - cosine * pushed) / (
            self.half_length * (4 / 3 - self.pole_mass * cosine**2 / self.mass)
        )
        moved = pushed - moment * turned * cosine / self.mass
        self.state = [
            x + self.seconds * speed,
            speed + self.seconds * moved,
            angle + self.seconds * spin,
            spin + self.seconds * turned,
        ]
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * math.pi / 180
        return list(self.state), 1.0, fallen


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(4, 64)
        self.action_head = nn.Linear(64, 2)
        self.value_head = nn.Linear(64, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def select_action(model, state):
    probabilities, value = model(torch.tensor(state))
    policy = Categorical(probabilities)
    action = policy.sample()
    model.saved_actions.append(SavedAction(policy.log_prob(action), value))
    return action.item()


def finish_episode(model, optimizer, gamma):
    total, returns = 0.0, []
    for reward in model.rewards[::-1]:
        total = reward + gamma * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + torch.finfo(torch.float32).eps)
    policy_losses, value_losses = [], []
    for (log_prob, value), expected in zip(model.saved_actions, returns, strict=True):
        advantage = expected - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, expected.unsqueeze(0)))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--every", type=int, default=10)
    arguments = parser.parse_args()

    torch.manual_seed(543)
    environment, model = CartPole(), Policy()
    optimizer = optim.Adam(model.parameters(), lr=3e-2)
    running = 10.0
    for episode in range(1, arguments.episodes + 1):
        state, length = environment.reset(), 0
        while length < 200:
            state, reward, done = environment.step(select_action(model, state))
            model.rewards.append(reward)
            length += 1
            if done:
                break
        running = 0.05 * length + 0.95 * running
        loss = finish_episode(model, optimizer, gamma=0.99)
        if episode % arguments.every == 0:
            print(f"episode {episode:3d}: {length:3d} steps, mean {running:.2f}, loss {loss:.3f}")


if __name__ == "__main__":
    main()
