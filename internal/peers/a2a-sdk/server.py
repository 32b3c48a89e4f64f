"""An agent on the SDK's own server: it asks where to, in words, and fails or never ends when it is told to."""

import asyncio
import socket

import uvicorn
from a2a.helpers import get_message_text, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
sent = []


class Travel(AgentExecutor):
    async def execute(self, context, event_queue):
        text = get_message_text(context.message)
        sent.append(context.message.message_id)
        assert len(set(sent)) == len(sent), "a message came twice"
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if text == "Fail.":
            await updater.failed(updater.new_agent_message([new_text_part("there are no trains")]))
        elif text == "Plan a trip.":
            await asyncio.sleep(0.5)
            await updater.requires_input(updater.new_agent_message([new_text_part("Where to?")]))
        else:
            await updater.add_artifact([new_text_part(f"a trip to {text}")])
            await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="travel", description="Plans trips.", version="1",
    supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
    capabilities=AgentCapabilities(streaming=True), default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="plan", name="plan", description="Plans trips.", tags=["travel"])])
handler = DefaultRequestHandlerV2(agent_executor=Travel(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])
print(url, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
