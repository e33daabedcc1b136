// A minimal proxy with Node's public API: no checks, limits, timeouts or log. Backends speak h2c or HTTP/1.1.
import { Agent, request } from "node:http";
import { connect, createSecureServer, createServer } from "node:http2";
import { given, tell, tlsOptions } from "./given.mjs";

const server = tlsOptions ? createSecureServer(tlsOptions) : createServer();
server.on("stream", given.http2 === "both" ? passCall : passRequest);
server.listen(0, "127.0.0.1", () => tell(server));

const agent = new Agent({ keepAlive: true });
const { hostname, port } = new URL(given.backend);
function passRequest(stream, headers) {
  const { ":method": method, ":path": path, ":authority": host, authorization } = headers;
  const fields = { host, ...(authorization && { authorization }) };
  const outgoing = request({ hostname, port, method, path, agent, headers: fields }, (answer) => {
    const { connection: _, "keep-alive": __, ...rest } = answer.headers;
    stream.respond({ ":status": answer.statusCode, ...rest });
    answer.pipe(stream);
  });
  outgoing.end();
}

const session = given.http2 === "both" && connect(given.backend);
function passCall(stream, headers) {
  const outgoing = session.request(headers);
  let trailers = {};
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  outgoing.on("response", (head) => stream.respond(head, { waitForTrailers: true }));
  outgoing.on("trailers", (fields) => (trailers = fields));
  stream.pipe(outgoing).pipe(stream);
}
