import { expect, test } from "vitest";
import {
  expectHarmlessState,
  flood,
  type HostileAnswer,
  startHostileStateServer,
} from "../../support/hostile-state-server.ts";
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
