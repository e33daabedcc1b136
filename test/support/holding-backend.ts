import { startPlainBackend, type PlainBackend } from "./plain-backend.ts";

export interface HoldingBackend extends PlainBackend {
  /** The paths of the requests that wait for a response, in order of arrival. */
  held(): string[];
  /** Answers a held request. Throws if there is none. */
  release(path: string): void;
}

/** Holds requests with `/hold/` in their path until they are released, and answers others at once. Reads all bodies. */
export async function startHoldingBackend(): Promise<HoldingBackend> {
  const held = new Map<string, () => void>();
  const backend = await startPlainBackend((request, response) => {
    const { url = "" } = request;
    request.resume();
    if (!url.includes("/hold/")) {
      request.on("end", () => response.end("ok"));
      return;
    }
    held.set(url, () => response.end(url));
    response.once("close", () => held.delete(url));
  });
  return {
    url: backend.url,
    held: () => [...held.keys()],
    release(path) {
      const answer = held.get(path);
      if (answer === undefined) throw new Error(`${path} is not held`);
      answer();
    },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}
