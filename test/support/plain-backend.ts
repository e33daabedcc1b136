import { createServer, type RequestListener } from "node:http";
import { listening } from "./listening.ts";

export interface PlainBackend extends AsyncDisposable {
  readonly url: string;
}

/** Starts a backend with this request listener. */
export function startPlainBackend(listener: RequestListener): Promise<PlainBackend> {
  return listening(createServer(listener));
}
