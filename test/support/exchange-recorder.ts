import type {
  AnswerHandler,
  BackendRequest,
  RequestControl,
} from "../../src/upstream/http/connection.ts";

export interface RecordedExchange extends AnswerHandler {
  readonly ended: Promise<void>;
  readonly interim: number[];
  status: number;
  statusMessage: string | undefined;
  headers: Record<string, unknown>;
  trailers: Record<string, unknown>;
  text: string;
  wasUsed: boolean;
  error: Error | undefined;
  control: RequestControl | undefined;
}

/** Creates a handler that records an exchange. @param onPart called after each part of the body. */
export function recorder(
  onPart: (exchange: RecordedExchange) => void = () => undefined,
): RecordedExchange {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const exchange: RecordedExchange = {
    ended,
    interim: [],
    status: 0,
    statusMessage: undefined,
    headers: {},
    trailers: {},
    text: "",
    wasUsed: false,
    error: undefined,
    control: undefined,
    onRequestStart(control, wasUsed) {
      exchange.control = control;
      exchange.wasUsed = wasUsed;
    },
    onResponseStart(status, headers, statusMessage) {
      if (status < 200) exchange.interim.push(status);
      else Object.assign(exchange, { status, headers: { ...headers }, statusMessage });
    },
    onResponseData(chunk) {
      exchange.text += chunk.toString("latin1");
      onPart(exchange);
    },
    onResponseEnd(trailers) {
      exchange.trailers = { ...trailers };
      resolve();
    },
    onResponseError(error) {
      exchange.error = error;
      resolve();
    },
  };
  return exchange;
}

export const GET: BackendRequest = {
  method: "GET",
  path: "/",
  body: null,
  headers: ["Accept", "*/*", "Host", "backend.example"],
};
