// The minimum cost of the runtime: a node:http2 server without a backend. It checks nothing, and sends the backend's answer.
import { createSecureServer, createServer } from "node:http2";
import { SMALL_BODY } from "../backends/nginx.ts";
import { GRPC_ANSWER } from "../backends/grpc-answer.ts";
import { given, tell, tlsOptions } from "./given.mjs";

const server = tlsOptions ? createSecureServer(tlsOptions) : createServer();
server.on("stream", given.http2 === "both" ? answerCall : answerGet);
server.listen(0, "127.0.0.1", () => tell(server));

function answerGet(stream) {
  stream.respond({ ":status": 200, "content-type": "application/json", "content-length": 130 });
  stream.end(SMALL_BODY);
}

function answerCall(stream) {
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "" }));
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.resume().on("end", () => stream.end(GRPC_ANSWER));
}
