import { startPlainBackend, type PlainBackend } from "./plain-backend.ts";

export interface HoldingBackend extends PlainBackend {
  /** The paths of the requests that wait for their answer, in the order in which they came. */
  held(): string[];
  /** Answers a request that is held; throws when it is not. */
  release(path: string): void;
}

/** Holds every request whose path has `/hold/` in it until it is told to answer; answers others at once. Bodies are read. */
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
