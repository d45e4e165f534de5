"""A cross-encoder of one operation, as a folder: the more ids its input has, the higher is the score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "walrus", "tea"]


def write_model(onnx: Any, folder: Path) -> None:
    """onnx: the library. Scores are the sums of the ids of question and text."""
    folder.mkdir()
    make, kinds = onnx.helper, onnx.TensorProto
    ids = [make.make_tensor_value_info(n, kinds.INT64, ["b", "t"]) for n in ("input_ids", "attention_mask")]
    axes = make.make_tensor("axes", kinds.INT64, [1], [1])
    nodes = [
        make.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        make.make_node("Cast", ["kept"], ["numbers"], to=kinds.FLOAT),
        make.make_node("ReduceSum", ["numbers", "axes"], ["logits"], keepdims=1),
    ]
    logits = make.make_tensor_value_info("logits", kinds.FLOAT, ["b", 1])
    graph = make.make_graph(nodes, "sum", ids, [logits], [axes])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: at for at, word in enumerate(WORDS)},
            "unk_token": "[UNK]",
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = {"model_max_length": 64, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))
