/**
 * However a client splits an HTTP/2 body into frames and packets, the backend gets all of it or sees that it is
 * incomplete.
 */
import { setTimeout as delay } from "node:timers/promises";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHttp2Backend } from "../support/http2-backend.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  FrameClient,
  GET,
  headerBlock,
} from "../support/http2-frames.ts";
import { startPlainBackend } from "../support/plain-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const PADDED = 0x8;

interface Drawn {
  /** The content of each DATA frame. */
  readonly parts: readonly string[];
  readonly padded: boolean;
  /** Which frame ends the stream. */
  readonly end: "last part" | "empty part" | "trailers";
  /** The error of `content-length` relative to the body; undefined if it is not sent. */
  readonly off: number | undefined;
  /** The frames after which a packet ends. */
  readonly cuts: readonly boolean[];
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  parts: fc.array(fc.constantFrom("", "a", "bc", "d".repeat(300)), { maxLength: 4 }),
  padded: fc.boolean(),
  end: fc.constantFrom("last part", "empty part", "trailers"),
  off: fc.constantFrom(undefined, undefined, 0, 0, -1, 1),
  cuts: fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
});

function framesOf({ parts, padded, end, off }: Drawn, path: string): Buffer[] {
  const data = (part: string, flags: number): Buffer =>
    padded
      ? frame(FRAME.data, flags | PADDED, 1, Buffer.from(`\x03${part}\0\0\0`, "latin1"))
      : frame(FRAME.data, flags, 1, part);
  const declared = lengthOf(parts) + (off ?? 0);
  const length = off === undefined ? [] : [["content-length", String(declared)] as const];
  const head = [[":method", "POST"] as const, ...GET.slice(1, 3), [":path", path] as const];
  const sent = end === "empty part" || parts.length === 0 ? [...parts, ""] : parts;
  const flagsOf = (at: number): number =>
    end !== "trailers" && at === sent.length - 1 ? END_STREAM : 0;
  return [
    frame(FRAME.headers, END_HEADERS, 1, headerBlock([...head, ...length])),
    ...sent.map((part, at) => data(part, flagsOf(at))),
    ...(end === "trailers"
      ? [frame(FRAME.headers, END_HEADERS | END_STREAM, 1, headerBlock([["x-sum", "1"]]))]
      : []),
  ];
}

const lengthOf = (parts: readonly string[]): number => parts.join("").length;

describe.each(["http1", "h2c"])("in front of an %s backend", (protocol) => {
  const stack = new AsyncDisposableStack();
  /** The complete bodies, by path. */
  const whole = new Map<string, string>();
  let gate: Sallyport;
  let count = 0;

  beforeAll(async () => {
    const backend =
      protocol === "h2c"
        ? await startHttp2Backend(async ({ stream, path, body }) => {
            const content = await body().catch(() => undefined);
            if (content === undefined || stream.destroyed) return;
            whole.set(path, content);
            stream.respond({ ":status": 200 });
            stream.end();
          })
        : await startPlainBackend((request, response) => {
            text(request).then(
              (content) => {
                whole.set(request.url ?? "", content);
                response.end();
              },
              () => response.destroy(),
            );
          });
    stack.use(backend);
    const upstreams = { app: { protocol } };
    const server = { http2: true, tls: "off" };
    gate = stack.use(await startSallyport({ target: backend.url, config: { server, upstreams } }));
  });
  afterAll(() => stack.disposeAsync());

  async function check(request: Drawn): Promise<void> {
    const path = `/public/${(count += 1)}`;
    await using client = await FrameClient.connect(gate);
    let packet: Buffer[] = [];
    for (const [at, each] of framesOf(request, path).entries()) {
      packet.push(each);
      if (request.cuts[at] !== true) continue;
      client.send(Buffer.concat(packet));
      packet = [];
      await delay(2);
    }
    client.send(Buffer.concat(packet));
    const wrong = lengthOf(request.parts) + (request.off ?? 0) < 0 || (request.off ?? 0) !== 0;
    const over = (): boolean =>
      client.closed || client.of(FRAME.reset).length > 0 || client.of(FRAME.goAway).length > 0;
    await until(() => over() || client.of(FRAME.headers).length > 0);
    const body = request.parts.join("");
    expect(whole.get(path)).toBe(wrong ? undefined : body);
  }

  it("passes complete bodies, and none that differs from its declared length", async () => {
    const examples = (["last part", "empty part", "trailers"] as const).map((end): Drawn => ({
      parts: [],
      padded: false,
      end,
      off: undefined,
      cuts: [],
    }));
    // Several concurrently, since each waits until its packets are read one by one.
    const several = fc.array(drawn, { minLength: 10, maxLength: 10 });
    const checkAll = (requests: readonly Drawn[]) => Promise.all(requests.map(check));
    await fc.assert(
      fc.asyncProperty(several, async (requests) => void (await checkAll(requests))),
      { numRuns: 15, examples: [[examples]] },
    );
  }, 60_000);
});
