import * as grpc from "@grpc/grpc-js";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
} from "../../src/server/decisions/external-auth_pb.ts";
import type { Peer } from "./raw-client.ts";

/** What Envoy says of a request. */
export interface CheckedRequest {
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  readonly headers?: Record<string, string>;
  /** As with `encode_raw_headers`. */
  readonly rawHeaders?: readonly (readonly [string, Buffer])[];
  /** The address of the client, as Envoy sees it. */
  readonly source?: string;
}

/** Asks as Envoy's ext_authz does over gRPC. */
export class CheckClient implements AsyncDisposable {
  readonly #client: grpc.Client;

  constructor({ port, ca }: Peer) {
    const credentials =
      ca === undefined
        ? grpc.credentials.createInsecure()
        : grpc.credentials.createSsl(Buffer.from(ca));
    this.#client = new grpc.Client(`localhost:${port}`, credentials);
  }

  /** @throws the status of the call, if it is not OK. */
  check(request: CheckedRequest, deadlineMs = 5_000): Promise<CheckResponse> {
    return this.send(Buffer.from(toBinary(CheckRequestSchema, checkRequest(request))), deadlineMs);
  }

  /** Sends any bytes as the message. */
  send(message: Buffer, deadlineMs = 5_000): Promise<CheckResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<CheckResponse>();
    this.#client.makeUnaryRequest(
      "/envoy.service.auth.v3.Authorization/Check",
      (bytes: Buffer) => bytes,
      (bytes) => fromBinary(CheckResponseSchema, bytes),
      message,
      { deadline: Date.now() + deadlineMs },
      (error, answer) => (answer === undefined ? reject(error) : resolve(answer)),
    );
    return promise;
  }

  async [Symbol.asyncDispose]() {
    this.#client.close();
  }
}

function checkRequest(request: CheckedRequest) {
  const { method = "GET", path = "/", host = "app.example.com" } = request;
  const { headers, rawHeaders, source = "192.0.2.50" } = request;
  const http: MessageInitShape<typeof CheckRequestSchema> = {
    attributes: {
      source: { address: { socketAddress: { address: source } } },
      request: {
        http: {
          method,
          path,
          host,
          scheme: "https",
          ...(headers === undefined ? {} : { headers }),
          ...(rawHeaders === undefined
            ? {}
            : { headerMap: { headers: rawHeaders.map(([key, rawValue]) => ({ key, rawValue })) } }),
        },
      },
    },
  };
  return create(CheckRequestSchema, http);
}

/** What a response changes or answers, in short. */
export function shortly({ status, httpResponse, dynamicMetadata }: CheckResponse) {
  const { case: kind, value } = httpResponse;
  const set = Object.fromEntries(
    (value?.headers ?? []).map(({ header }) => [header?.key, header?.value]),
  );
  if (kind === "deniedResponse") {
    return { code: status?.code, denied: value.status?.code, headers: set, body: value.body };
  }
  return {
    code: status?.code,
    headers: set,
    removed: kind === "okResponse" ? value.headersToRemove.toSorted() : undefined,
    queries: kind === "okResponse" ? value.queryParametersToRemove : undefined,
    metadata: dynamicMetadata,
  };
}
