import { createServer, type RequestListener } from "node:http";
import { listening } from "./listening.ts";

export interface PlainBackend extends AsyncDisposable {
  readonly url: string;
}

/** A backend that does with a request what the test says. */
export function startPlainBackend(listener: RequestListener): Promise<PlainBackend> {
  return listening(createServer(listener));
}
