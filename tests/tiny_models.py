"""Models of one operation, as folders that fastembed loads: a cross-encoder and an embedder."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from support import require_module

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "walrus", "tea", "바다"]


def write_cross_encoder(folder: Path) -> None:
    """Scores are the sums of the ids of question and text."""
    onnx = _library()
    make, kinds = onnx.helper, onnx.TensorProto
    axes = make.make_tensor("axes", kinds.INT64, [1], [1])
    nodes = [
        make.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        make.make_node("Cast", ["kept"], ["numbers"], to=kinds.FLOAT),
        make.make_node("ReduceSum", ["numbers", "axes"], ["logits"], keepdims=1),
    ]
    logits = make.make_tensor_value_info("logits", kinds.FLOAT, ["b", 1])
    _write(onnx, folder, nodes, logits, axes)


def write_embedder(folder: Path) -> None:
    """Each word has its own axis: as many dimensions as there are words."""
    onnx = _library()
    make, kinds, size = onnx.helper, onnx.TensorProto, len(WORDS)
    axes = [float(row == column) for row in range(size) for column in range(size)]
    table = make.make_tensor("table", kinds.FLOAT, [size, size], axes)
    nodes = [make.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"], axis=0)]
    states = make.make_tensor_value_info("last_hidden_state", kinds.FLOAT, ["b", "t", size])
    _write(onnx, folder, nodes, states, table)


def _library() -> Any:
    require_module("fastembed", "pip install 'mnemolog[fastembed]'")
    require_module("onnx", "pip install onnx")
    return import_module("onnx")


def _write(onnx: Any, folder: Path, nodes: list[Any], output: Any, constant: Any) -> None:
    folder.mkdir()
    make, kinds = onnx.helper, onnx.TensorProto
    ids = [make.make_tensor_value_info(n, kinds.INT64, ["b", "t"]) for n in ("input_ids", "attention_mask")]
    graph = make.make_graph(nodes, "tiny", ids, [output], [constant])
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
