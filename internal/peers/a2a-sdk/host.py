"""Calls the agent of "probe a2a" with the SDK's own client: card, messages, answers, streams, cancellation."""

import asyncio
import sys

import httpx
from a2a.client.client import ClientConfig
from a2a.client.client_factory import create_client
from a2a.helpers import get_artifact_text, new_data_part, new_text_part
from a2a.types import CancelTaskRequest, GetTaskRequest, Message, Role, SendMessageRequest, SubscribeToTaskRequest, TaskState
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf import json_format

url = sys.argv[1]
ANSWER = "application/vnd.assent.input-response+json"
REQUEST = "application/vnd.assent.input-request+json"


def message(*parts, **more):
    return SendMessageRequest(message=Message(role=Role.ROLE_USER, parts=parts, **more))


async def last(events):
    """What a task is at the end of a stream, put together from its events."""
    task, kinds = None, []
    async for event in events:
        kinds.append(event.WhichOneof("payload"))
        if event.HasField("task"):
            task = event.task
        elif event.HasField("artifact_update"):
            task.artifacts.append(event.artifact_update.artifact)
        elif event.HasField("status_update"):
            task.status.CopyFrom(event.status_update.status)
    return task, kinds


async def refused(error, call):
    try:
        await call
    except error as e:
        assert e.message, "a refusal without words"
        return
    raise AssertionError(f"expected {error}")


def answers(task, **by_tool):
    out = []
    for part in task.status.message.parts:
        if part.media_type != REQUEST:
            continue
        asked = json_format.MessageToDict(part.data)
        yes = by_tool[asked["toolCall"]["name"]]
        out.append(new_data_part(
            {"$type": "toolApprovalResponse", "requestId": asked["requestId"], "approved": yes, "toolCall": asked["toolCall"]},
            media_type=ANSWER))
    return out


async def converse(streaming):
    http = httpx.AsyncClient(headers={"Authorization": "Bearer token-of-the-peer"}, timeout=30)
    client = await create_client(url, ClientConfig(streaming=streaming, httpx_client=http))
    mode = "stream" if streaming else "send"
    task, kinds = await last(client.send_message(message(new_text_part("Pay the rent."), message_id=f"m1-{mode}", context_id=f"c-{mode}")))
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED and task.context_id == f"c-{mode}", task
    assert kinds == (["task", "status_update"] if streaming else ["task"]), kinds
    again, _ = await last(client.send_message(message(new_text_part("Pay the rent."), message_id=f"m1-{mode}", context_id=f"c-{mode}")))
    assert again.id == task.id, "a repeated message began another task"
    await refused(InvalidParamsError, last(client.send_message(message(new_text_part("I approve"), message_id="m2-" + mode, task_id=task.id))))
    done, kinds = await last(client.send_message(message(
        *answers(task, transfer=True, close_account=False), message_id=f"m3-{mode}", task_id=task.id, context_id=task.context_id)))
    assert done.status.state == TaskState.TASK_STATE_COMPLETED, done
    assert not streaming or kinds == ["task", "artifact_update", "status_update"], kinds
    seen = await client.get_task(GetTaskRequest(id=task.id))
    text = get_artifact_text(seen.artifacts[0])
    assert "ran balance" in text and "ran transfer" in text and "rejected" in text and "ran close_account" not in text, text
    await refused(TaskNotCancelableError, client.cancel_task(CancelTaskRequest(id=task.id)))
    if streaming:
        await refused(UnsupportedOperationError, last(client.subscribe(SubscribeToTaskRequest(id=task.id))))
    await refused(UnsupportedOperationError, last(client.send_message(message(new_text_part("more"), message_id="m4-" + mode, task_id=task.id))))

    other, _ = await last(client.send_message(message(new_text_part("Pay the rent."), message_id=f"m5-{mode}")))
    canceled = await client.cancel_task(CancelTaskRequest(id=other.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED, canceled
    await refused(TaskNotFoundError, client.get_task(GetTaskRequest(id="task-x")))
    await http.aclose()


async def main():
    card = httpx.get(url + ".well-known/agent-card.json").json()
    assert httpx.post(url, json={}).status_code == 401, "a caller without a token was let in"
    assert card["securitySchemes"]["bearer"], card
    await converse(streaming=False)
    await converse(streaming=True)
    print("the SDK's client: card, messages, a repeated message, answers, streams, cancellation; 6 wrong calls refused")


asyncio.run(main())
