/** One backend of the soak test, a separate program so that it can be killed: `main.ts HOST PORT`, with commands over IPC. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { WebSocketServer } from "ws";
import { answerRightly, breakOff } from "./answers.ts";
import { isMode, type Mode } from "./modes.ts";

const [host = "127.0.0.1", port = "0"] = process.argv.slice(2);
let mode: Mode = "right";

/** The timeout is short, so that idle connections end soon. */
const server = createServer({ keepAliveTimeout: 3_000 }, (request, response) => {
  void answer(request, response).catch(() => response.destroy());
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  switch (mode) {
    case "right":
      await answerRightly(request, response);
      break;
    case "silent":
      request.resume();
      break;
    case "breaking":
      request.resume();
      breakOff(response);
      break;
    case "dropping":
      request.socket.resetAndDestroy();
      break;
  }
}

const sockets = new WebSocketServer({ noServer: true });
server.on("upgrade", (request, socket, head) => {
  socket.on("error", () => socket.destroy());
  if (mode === "silent") return;
  if (mode !== "right") {
    socket.destroy();
    return;
  }
  if (request.url?.endsWith("/refuse") === true) {
    socket.end("HTTP/1.1 409 Conflict\r\nX-Soak-Backend: 1\r\nContent-Length: 0\r\n\r\n");
    return;
  }
  sockets.handleUpgrade(request, socket, head, (client) => {
    client.on("error", () => client.terminate());
    client.on("message", (message: Buffer, binary) => {
      const text = message.toString();
      if (text === "close") client.close(1000);
      else if (text === "drop") client.terminate();
      else client.send(message, { binary });
    });
  });
});

process.on("message", (wanted) => {
  if (!isMode(wanted)) return;
  mode = wanted;
  process.send?.({ mode });
});
process.on("disconnect", () => process.exit());

server.listen(Number(port), host, () => {
  const address = server.address();
  process.send?.({ port: typeof address === "object" ? address?.port : 0 });
});
