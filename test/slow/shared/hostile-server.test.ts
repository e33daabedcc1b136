import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { SharedState } from "../../../src/shared/shared-state.ts";
import { stateServerAt } from "../../../src/shared/state-server.ts";
import {
  expectHarmlessState,
  flood,
  type HostileAnswer,
  startHostileStateServer,
} from "../../support/hostile-state-server.ts";
import { recordedLog } from "../../support/recorded-log.ts";
import { until } from "../../support/until.ts";

const ANSWERS: Record<string, HostileAnswer> = {
  "an answer without end": flood(`$${2 ** 29}\r\n`, "x"),
  "an impossible length": `*${"9".repeat(30)}\r\n`,
  "a text longer than it says": "$1\r\nabcdefgh\r\n",
  "arrays within arrays": Buffer.from("*1\r\n".repeat(200_000)),
  "another protocol": "HTTP/1.1 400 Bad Request\r\n\r\n",
  "an error": "-ERR \u001b[31m of-the-test\r\n",
  "numbers where texts belong": ":1\r\n",
  "more replies than commands": "+OK\r\n".repeat(10_000),
  "arrays that claim 32 million items": `*${2 ** 25 - 1}\r\n`.repeat(4),
  "a map that claims 16 million": `%${2 ** 24 - 1}\r\n`.repeat(4),
  "nulls that nobody asked for": `+OK\r\n${"$-1\r\n".repeat(1_000)}`,
  "a message that nobody subscribed to": ">1\r\n_\r\n",
  nothing: "",
};

test.each(Object.entries(ANSWERS))(
  "a server that sends %s causes one warning, and blocks nothing",
  { timeout: 30_000 },
  async (_, answer) => {
    const server = await startHostileStateServer(answer, { polite: false });
    const before = process.memoryUsage().rss;
    await expectHarmlessState(server, {}, () => until(() => server.heard.length >= 2, 15_000));
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 ** 2);
  },
);

const text = (value: string): string => `$${value.length}\r\n${value}\r\n`;
const digest = "A".repeat(43);
const ATTEMPT = text(JSON.stringify({ attempt: [1, 0, digest, digest, digest] }));
const EVENTS = `*1\r\n*2\r\n${text("1-1")}*4\r\n${text("from")}${text("x")}${text("event")}${ATTEMPT}`;

/** A replica of a server that lets it in, says that this is the time, and answers `XREAD` and `ZRANGE` in some way. */
async function replicaOf(time: string, answerToXread: string, answerToZrange = "*0\r\n") {
  let reads = 0;
  const server = await startHostileStateServer(
    (socket, _port, command) => {
      if (command.includes("XREAD")) {
        reads += 1;
        socket.write(answerToXread);
      } else if (command.includes("}probe")) {
        socket.write(`*3\r\n${text("mark")}${text("")}${text("mark")}`);
      } else if (command.includes("ZRANGE")) socket.write(answerToZrange);
      else if (command.includes("}events")) socket.write(`*2\r\n${text(time)}${EVENTS}`);
      else socket.write("*0\r\n");
    },
    { polite: true },
  );
  const log = recordedLog();
  const state = new SharedState({
    place: { server: stateServerAt(`redis://:of-the-test@127.0.0.1:${server.port}`) },
    prefix: "test:",
    timeout: 50,
    log,
    clock: systemClock,
    observer: { sharedStateAsked: () => undefined },
  });
  const agoMs: number[] = [];
  await state.begin(
    { attemptEnded: (_end, ago) => agoMs.push(ago), revoked: () => undefined },
    () => [],
  );
  return { state, agoMs, log, reads: () => reads };
}

test("a server that does not wait for events is not asked without a pause", async () => {
  const { state, agoMs, reads } = await replicaOf("5", "*-1\r\n");
  await sleep(1_000);
  expect(state.up).toBe(true);
  await state.close();
  expect(agoMs).toEqual([4]);
  expect(reads()).toBeGreaterThan(2);
  expect(reads()).toBeLessThan(20);
});

test("a server whose time is no number tells nothing of attempts", async () => {
  const { state, agoMs, log } = await replicaOf("soon", "");
  await state.close();
  expect(agoMs).toEqual([]);
  expect(JSON.stringify(log.lines)).toContain("not understood");
});

test("a server that sends more revocations than it was asked for does not stop the event loop", async () => {
  const many = 300_000;
  const { state, log } = await replicaOf("5", "", `*${many}\r\n${text("").repeat(many)}`);
  await state.close();
  expect(JSON.stringify(log.lines)).toContain("not understood");
});
