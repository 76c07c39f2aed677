"""stable-baselines3: PPO, A2C, DQN and SAC train in a small environment."""

import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC


class Walk(gymnasium.Env):
    """A point that is pushed, and paid for being near the origin."""

    observation_space = gymnasium.spaces.Box(-5.0, 5.0, (2,), np.float32)

    def __init__(self, discrete):
        whole = gymnasium.spaces.Discrete(3)
        self.action_space = whole if discrete else gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.discrete = discrete

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = np.array([1.0, 0.0], np.float32), 0
        return self.state, {}

    def step(self, action):
        push = float(action) - 1 if self.discrete else float(action[0])
        place, speed = self.state
        speed = 0.9 * speed + 0.3 * push
        self.state = np.clip(np.array([place + 0.2 * speed, speed], np.float32), -5, 5)
        self.steps += 1
        return self.state, -float(place**2), False, self.steps >= 10, {}


def run():
    small = {"policy_kwargs": {"net_arch": [8]}, "seed": 0, "device": "cpu"}
    early = {"learning_starts": 8, "batch_size": 8, "train_freq": 4}
    learners = [
        PPO("MlpPolicy", Walk(True), n_steps=16, batch_size=8, n_epochs=2, **small),
        PPO("MlpPolicy", Walk(False), n_steps=16, batch_size=8, n_epochs=2, **small),
        A2C("MlpPolicy", Walk(True), n_steps=8, **small),
        DQN("MlpPolicy", Walk(True), target_update_interval=10, **early, **small),
        SAC("MlpPolicy", Walk(False), **early, **small),
    ]
    found = []
    for learner in learners:
        learner.learn(32)
        found.append(list(learner.policy.parameters()))
        action, _ = learner.predict(np.array([0.5, -0.5], np.float32), deterministic=True)
        found.append(torch.as_tensor(np.asarray(action)))
    return found
