"""A model that answers from a list, and messages."""

import asyncio
import json

from strands.models.model import Model

run = asyncio.run


def message(text, role="user", **fields):
    return {"role": role, "content": [{"text": text}], **fields}


def call(name, **arguments):
    use = {"toolUseId": f"use-{name}", "name": name, "input": arguments}
    return {"role": "assistant", "content": [{"toolUse": use}]}


class ListedModel(Model):
    """Answers with what is listed, then with "Good"; keeps what it was shown."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.shown = []
        self.tools = []

    def update_config(self, **_):
        pass

    def get_config(self):
        return {"model_id": "listed"}

    async def structured_output(self, *_, **__):
        raise NotImplementedError
        yield {}

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        self.shown.append(json.dumps([messages, system_prompt], ensure_ascii=False))
        self.tools = [tool["name"] for tool in tool_specs or ()]
        answer = self.answers.pop(0) if self.answers else message("Good", "assistant")
        yield {"messageStart": {"role": "assistant"}}
        for block in answer["content"]:
            use = block.get("toolUse")
            start = {"toolUse": {key: use[key] for key in ("name", "toolUseId")}} if use else {}
            delta = {"toolUse": {"input": json.dumps(use["input"])}} if use else block
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if use else "end_turn"}}


async def texts(store, query, **options):
    return [entry.content for entry in await store.search(query, options or None)]
