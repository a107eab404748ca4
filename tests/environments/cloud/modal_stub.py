"""Modal on loopback: the two services that its library speaks to, running commands here."""

# ruff: noqa: N802 - the names are those of the service

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grpclib import GRPCError
from grpclib.const import Status
from grpclib.server import Server
from modal_proto import api_grpc, api_pb2, task_command_router_grpc, task_command_router_pb2
from tests.environments.cloud.stubs import left_over

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _token() -> str:
    """Shaped like one, and valid for a while."""
    parts = ({"alg": "none"}, {"exp": int(time.time()) + 3600})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return f"{encoded[0].decode()}.{encoded[1].decode()}.x"


def _refusing(base: Any) -> Any:
    """A service that knows all calls of another and refuses them."""

    def refusal(name: str) -> Any:
        async def refuse(self: object, stream: Any) -> None:
            raise GRPCError(Status.UNIMPLEMENTED, name)

        return refuse

    return type("Refusing", (base,), {name: refusal(name) for name in base.__abstractmethods__})


def _info() -> Any:
    return api_pb2.SandboxInfo(id="sb-stale", created_at=1.0, app_id="ap-1")


class Api(_refusing(api_grpc.ModalClientBase)):  # type: ignore[misc]
    def __init__(self, seen: list[str]) -> None:
        self.url = ""
        self.seen = seen

    async def _answer(self, stream: Any, message: Any) -> None:
        request = await stream.recv_message()
        self.seen.append(type(request).__name__.removesuffix("Request"))
        await stream.send_message(message)

    async def ClientHello(self, stream: Any) -> None:
        await self._answer(stream, api_pb2.ClientHelloResponse())

    async def AppGetOrCreate(self, stream: Any) -> None:
        await self._answer(stream, api_pb2.AppGetOrCreateResponse(app_id="ap-1"))

    async def AuthTokenGet(self, stream: Any) -> None:
        await self._answer(stream, api_pb2.AuthTokenGetResponse(token=_token()))

    async def ImageFromId(self, stream: Any) -> None:
        await self._answer(stream, api_pb2.ImageFromIdResponse(image_id="im-1"))

    async def SandboxCreateV2(self, stream: Any) -> None:
        access = api_pb2.CommandRouterAccess(url=self.url, jwt=_token())
        made = api_pb2.SandboxCreateV2Response(
            sandbox_id="sb-1", task_id="ta-1", command_router_access=access
        )
        await self._answer(stream, made)

    async def SandboxTerminateV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        self.seen.append(f"SandboxTerminate {request.sandbox_id}")
        await stream.send_message(api_pb2.SandboxTerminateResponse())

    async def SandboxListV2(self, stream: Any) -> None:
        request = await stream.recv_message()
        # Pages end with an empty one.
        info = [] if request.before_timestamp else [_info()]
        await stream.send_message(api_pb2.SandboxListResponse(sandboxes=info))

    async def SandboxWaitV2(self, stream: Any) -> None:
        await self._answer(stream, api_pb2.SandboxWaitResponse())

    async def SandboxTagsGetV2(self, stream: Any) -> None:
        tags = [
            api_pb2.SandboxTag(tag_name=name, tag_value=value)
            for name, value in left_over().items()
        ]
        await self._answer(stream, api_pb2.SandboxTagsGetResponse(tags=tags))


class Router(_refusing(task_command_router_grpc.TaskCommandRouterBase)):  # type: ignore[misc]
    def __init__(self, seen: list[str]) -> None:
        self.seen = seen
        self._done: dict[str, subprocess.CompletedProcess[bytes]] = {}

    async def TaskExecStart(self, stream: Any) -> None:
        request = await stream.recv_message()
        words = list(request.command_args)
        done = await asyncio.to_thread(subprocess.run, words, capture_output=True)
        self._done[request.exec_id] = done
        await stream.send_message(task_command_router_pb2.TaskExecStartResponse())

    async def TaskExecStdioRead(self, stream: Any) -> None:
        request = await stream.recv_message()
        done = self._done[request.exec_id]
        out = task_command_router_pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT
        data = done.stdout if request.file_descriptor == out else done.stderr
        if data:
            await stream.send_message(task_command_router_pb2.TaskExecStdioReadResponse(data=data))

    async def TaskExecWait(self, stream: Any) -> None:
        request = await stream.recv_message()
        code = self._done[request.exec_id].returncode
        await stream.send_message(task_command_router_pb2.TaskExecWaitResponse(code=code))

    async def TaskSnapshotFilesystem(self, stream: Any) -> None:
        await stream.recv_message()
        self.seen.append("TaskSnapshotFilesystem")
        answer = task_command_router_pb2.TaskSnapshotFilesystemResponse(image_id="im-2")
        await stream.send_message(answer)


@contextmanager
def serving() -> Iterator[tuple[str, list[str]]]:
    """The address of both services, and the calls that came so far."""
    seen: list[str] = []
    api = Api(seen)
    up = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        server = Server([api, Router(seen)])
        await server.start("127.0.0.1", 0)
        port = server._server.sockets[0].getsockname()[1]
        api.url = f"http://127.0.0.1:{port}"
        up.set()
        await over.wait()
        server.close()
        await server.wait_closed()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    up.wait()
    try:
        yield api.url, seen
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
