import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { SharedState } from "../../../src/shared/shared-state.ts";
import { stateServerAt } from "../../../src/shared/state-server.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { recordedLog } from "../../support/recorded-log.ts";
import { until } from "../../support/until.ts";

/** A server that answers whatever it is asked with this, again and again if it is a function. */
async function startHostile(answer: string | Buffer | ((socket: Socket) => void)) {
  const sockets = new Set<Socket>();
  let asked = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("data", () => {
      asked += 1;
      if (typeof answer === "function") answer(socket);
      else socket.write(answer);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `redis://:of-the-test@127.0.0.1:${listeningPort(server)}`, asked: () => asked };
}

function flood(socket: Socket): void {
  const piece = Buffer.alloc(64 * 1024, "x");
  socket.write(`$${2 ** 29}\r\n`);
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", more);
  more();
}

const ANSWERS: Record<string, Parameters<typeof startHostile>[0]> = {
  "an answer without end": flood,
  "a length that nobody has": `*${"9".repeat(30)}\r\n`,
  "a text longer than it says": "$1\r\nabcdefgh\r\n",
  "arrays within arrays": Buffer.from("*1\r\n".repeat(200_000)),
  "another protocol": "HTTP/1.1 400 Bad Request\r\n\r\n",
  "an error": "-ERR \u001b[31m of-the-test\r\n",
  "numbers where texts belong": ":1\r\n",
  "more answers than questions": "+OK\r\n".repeat(10_000),
  nothing: "",
};

test.each(Object.entries(ANSWERS))(
  "%s ends as one warning, and nobody waits",
  { timeout: 30_000 },
  async (_, answer) => {
    const { url, asked } = await startHostile(answer);
    const log = recordedLog();
    const state = new SharedState({
      ...{
        place: { server: stateServerAt(url) },
        prefix: "test:",
        timeout: 50,
        log,
        clock: systemClock,
      },
      observer: { sharedStateAsked: () => undefined },
    });
    const before = process.memoryUsage().rss;
    const heard: unknown[] = [];
    await state.begin(
      { attemptEnded: (...end) => heard.push(end), revoked: (all) => heard.push(all) },
      () => [],
    );
    const began = performance.now();
    const revocation = { kind: "token", name: "a", until: Date.now() + 60_000 } as const;
    expect(await state.revoke([revocation])).toBe(false);
    expect(await state.settling.rates([{ key: "a", costMs: 1 }])).toBeUndefined();
    const counts = [{ key: "a", requests: 1 }];
    expect(await state.settling.concurrency(counts)).toBeUndefined();
    expect(performance.now() - began).toBeLessThan(1_000);
    await until(() => log.lines.some(({ level }) => level === "warn"), 15_000);
    await until(() => asked() >= 2, 15_000);
    await state.close();
    expect(heard).toEqual([]);
    expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(JSON.stringify(log.lines)).not.toMatch(/of-the-test|\\u001b/);
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 ** 2);
  },
);
