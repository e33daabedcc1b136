import * as grpc from "@grpc/grpc-js";
import { testCertificates } from "./certificates.ts";
import type { Peer } from "./raw-client.ts";

/** A service with the four kinds of gRPC calls, whose messages are plain bytes. */

const bytes = {
  requestSerialize: (value: Buffer) => value,
  requestDeserialize: (value: Buffer) => value,
  responseSerialize: (value: Buffer) => value,
  responseDeserialize: (value: Buffer) => value,
};

const call = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  ...bytes,
});

const CHECK = {
  check: { ...call("Check", false, false), path: "/grpc.health.v1.Health/Check" },
};

const SERVICE = {
  unary: call("Unary", false, false),
  client: call("Client", true, false),
  server: call("Server", false, true),
  both: call("Both", true, true),
};

type Unary = grpc.handleUnaryCall<Buffer, Buffer>;
type Both = grpc.handleBidiStreamingCall<Buffer, Buffer>;
type Server = grpc.handleServerStreamingCall<Buffer, Buffer>;

export interface GrpcBackend extends AsyncDisposable {
  readonly url: string;
  /** The metadata of each call. */
  readonly calls: readonly grpc.Metadata[];
  /** The answer to grpc.health.v1 (1 is SERVING), and the requests so far. */
  readonly health: { status: number; readonly asked: string[] };
  /** The number of calls cancelled by their clients. */
  readonly cancelled: () => number;
}

/** Starts a backend that obeys the messages `fail`, `hang` and `die`, and echoes anything else. */
export async function startGrpcBackend({ tls = false } = {}): Promise<GrpcBackend> {
  const { server: pair } = await testCertificates();
  const { key, cert } = { key: Buffer.from(pair.key), cert: Buffer.from(pair.cert) };
  const credentials = tls
    ? grpc.ServerCredentials.createSsl(null, [{ private_key: key, cert_chain: cert }])
    : grpc.ServerCredentials.createInsecure();
  const server = new grpc.Server();
  const calls: grpc.Metadata[] = [];
  let cancelled = 0;
  const watch = (metadata: grpc.Metadata, call: NodeJS.EventEmitter): void => {
    calls.push(metadata);
    call.on("cancelled", () => (cancelled += 1));
  };
  const unary: Unary = (asked, done) => {
    watch(asked.metadata, asked);
    const text = String(asked.request);
    const metadata = new grpc.Metadata();
    metadata.set("x-behind", "yes");
    if (text === "fail")
      done({ code: grpc.status.FAILED_PRECONDITION, details: "not like this: ü", metadata });
    else if (text !== "hang") done(null, asked.request, metadata);
  };
  const both: Both = (stream) => {
    watch(stream.metadata, stream);
    stream.on("data", (message: Buffer) => {
      if (String(message) === "die") server.forceShutdown();
      else if (String(message) !== "hang") stream.write(message);
    });
    stream.on("end", () => stream.end());
    stream.on("error", () => undefined);
  };
  const serve: Server = (stream) => {
    const count = Number(String(stream.request));
    let sent = 0;
    const go = (): void => {
      while (sent < count) {
        sent += 1;
        if (!stream.write(Buffer.from(`message ${sent}`))) {
          stream.once("drain", go);
          return;
        }
      }
      stream.end();
    };
    go();
  };
  const health: GrpcBackend["health"] = { status: 1, asked: [] };
  server.addService(CHECK, {
    check: ((asked, done) => {
      health.asked.push(asked.request.toString("latin1"));
      done(null, Buffer.from([8, health.status]));
    }) satisfies Unary,
  });
  server.addService(SERVICE, {
    unary,
    both,
    server: serve,
    client: ((stream, done) => {
      let total = 0;
      stream.on("data", (message: Buffer) => (total += message.length));
      stream.on("end", () => done(null, Buffer.from(String(total))));
    }) satisfies grpc.handleClientStreamingCall<Buffer, Buffer>,
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${port}`,
    calls,
    health,
    cancelled: () => cancelled,
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}

interface Asked {
  readonly token?: string | undefined;
  readonly deadline?: number;
}

/** Creates a client that connects to Sallyport. */
export function grpcClient({ port, ca }: Peer) {
  const credentials =
    ca === undefined
      ? grpc.credentials.createInsecure()
      : grpc.credentials.createSsl(Buffer.from(ca));
  const client = new grpc.Client(`127.0.0.1:${port}`, credentials, {
    "grpc.ssl_target_name_override": "localhost",
    "grpc.default_authority": "localhost",
  });
  const metadataOf = ({ token }: Asked): grpc.Metadata => {
    const metadata = new grpc.Metadata();
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    return metadata;
  };
  const optionsOf = ({ deadline }: Asked): grpc.CallOptions =>
    deadline === undefined ? {} : { deadline: Date.now() + deadline };
  const { requestSerialize: from, responseDeserialize: to } = bytes;
  return {
    /** Resolves with the response, or with the error. */
    unary: (message: string, asked: Asked = {}) =>
      new Promise<{ text?: string; error?: grpc.ServiceError; trailers?: grpc.Metadata }>(
        (resolve) => {
          let trailers: grpc.Metadata | undefined;
          client
            .makeUnaryRequest(
              "/test.Echo/Unary",
              from,
              to,
              Buffer.from(message),
              metadataOf(asked),
              optionsOf(asked),
              (error, value) =>
                setImmediate(() =>
                  resolve(
                    error === null
                      ? { text: String(value), ...(trailers && { trailers }) }
                      : { error },
                  ),
                ),
            )
            .on("status", (status) => (trailers = status.metadata));
        },
      ),
    upload: (messages: readonly Buffer[], asked: Asked = {}) =>
      new Promise<string>((resolve, reject) => {
        const stream = client.makeClientStreamRequest(
          "/test.Echo/Client",
          from,
          to,
          metadataOf(asked),
          optionsOf(asked),
          (error, value) => (error === null ? resolve(String(value)) : reject(error)),
        );
        for (const message of messages) stream.write(message);
        stream.end();
      }),
    /** Sends messages of one byte. @param everyMs the time between two. */
    uploadSlowly: (count: number, everyMs: number, asked: Asked = {}) =>
      new Promise<string>((resolve, reject) => {
        let sent = 0;
        let timer: NodeJS.Timeout | undefined;
        const stream = client.makeClientStreamRequest(
          "/test.Echo/Client",
          from,
          to,
          metadataOf(asked),
          optionsOf(asked),
          (error, value) => {
            clearInterval(timer);
            if (error === null) resolve(String(value));
            else reject(error);
          },
        );
        timer = setInterval(() => {
          stream.write(Buffer.from("x"));
          sent += 1;
          if (sent < count) return;
          clearInterval(timer);
          stream.end();
        }, everyMs);
      }),
    download: (count: number, asked: Asked = {}) =>
      client.makeServerStreamRequest(
        "/test.Echo/Server",
        from,
        to,
        Buffer.from(String(count)),
        metadataOf(asked),
        optionsOf(asked),
      ),
    both: (asked: Asked = {}) =>
      client.makeBidiStreamRequest(
        "/test.Echo/Both",
        from,
        to,
        metadataOf(asked),
        optionsOf(asked),
      ),
    close: () => client.close(),
  };
}

/** Resolves with the final status of a call. */
export function endOf(
  call: grpc.ClientDuplexStream<Buffer, Buffer> | grpc.ClientReadableStream<Buffer>,
): Promise<grpc.StatusObject> {
  call.on("error", () => undefined);
  return new Promise((resolve) => void call.on("status", resolve));
}
