"""sentence-transformers: sentences as vectors by a small BERT, trained on pairs of them."""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, models, util
from sentence_transformers.losses import (
    CosineSimilarityLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from transformers import BertConfig, BertModel, BertTokenizer

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "mat",
    "home",
    "big",
    "small",
]


def run():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_text("\n".join(WORDS))
        BertTokenizer(str(Path(folder, "vocab.txt"))).save_pretrained(folder)
        config = BertConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=16,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        BertModel(config).save_pretrained(folder)
        words = models.Transformer(folder, max_seq_length=12)
    pooling = models.Pooling(16)
    model = SentenceTransformer(modules=[words, pooling, models.Normalize()], device="cpu").double()
    first = ["the cat sat on the mat", "a big dog ran", "the small dog"]
    second = ["a cat sat on a mat", "the dog ran home", "a small cat"]
    third = ["the dog ran", "the cat sat", "big home"]
    found = []
    for loss, texts, labels in (
        (CosineSimilarityLoss(model), (first, second), torch.tensor([0.9, 0.5, 0.3]).double()),
        (MultipleNegativesRankingLoss(model), (first, second), None),
        (TripletLoss(model), (first, second, third), None),
    ):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        model.train()
        for _ in range(2):
            optimizer.zero_grad()
            value = loss([model.tokenize(each) for each in texts], labels)
            value.backward()
            found.append(value)
            optimizer.step()
    vectors = model.encode(first + second, convert_to_tensor=True)
    found += [vectors, util.cos_sim(vectors, vectors)]
    found.append(model.similarity(vectors[:3], vectors[3:]))
    hits = util.semantic_search(vectors[:2], vectors[2:], top_k=2)
    found.append([[hit["score"] for hit in each] for each in hits])
    return [found, list(model.parameters())]
