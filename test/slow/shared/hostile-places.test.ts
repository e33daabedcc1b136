import { expect, test } from "vitest";
import type { StatePlace } from "../../../src/shared/state-server.ts";
import {
  expectHarmlessState,
  flood,
  type HostileAnswer,
  type HostileServer,
  startHostileStateServer,
} from "../../support/hostile-state-server.ts";

const texts = (...each: readonly string[]): string =>
  `*${each.length}\r\n${each.map((text) => `$${text.length}\r\n${text}\r\n`).join("")}`;

const SENTINELS: Record<string, HostileAnswer> = {
  "the sentinel itself": (socket, own, command) =>
    socket.write(
      command.includes("SENTINEL") ? texts("127.0.0.1", String(own)) : "-ERR unknown command\r\n",
    ),
  "no address": texts("-", "?"),
  "a port that does not exist": texts("127.0.0.1", "99999"),
  "a name with a path": texts("evil.example/../x", "6379"),
  "a name of 60,000 letters": texts("a".repeat(60_000), "6379"),
  "a name with a line break": texts("a\r\nSET x y", "6379"),
  "one text": texts("127.0.0.1"),
  "an array of arrays": "*2\r\n*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n",
  "an array of a million": flood("*1000000\r\n", "$1\r\na\r\n"),
  "an array of impossible length": `*${"9".repeat(18)}\r\n`,
  "a text without end": flood(`$${2 ** 29}\r\n`, "x"),
  "pieces without end": flood("", ":1\r\n"),
  "a redirection": "-MOVED 1 127.0.0.1:1\r\n",
  nobody: "*-1\r\n",
  nothing: "",
};

const NODES: Record<string, HostileAnswer> = {
  "itself, for ever": (socket, own) => socket.write(`-MOVED 1 127.0.0.1:${own}\r\n`),
  "itself without a host": (socket, own) => socket.write(`-MOVED 1 :${own}\r\n`),
  "no address": "-MOVED 1 nowhere\r\n",
  "an address with a path": "-MOVED 1 127.0.0.1/x:6379\r\n",
  "port 0": "-MOVED 1 127.0.0.1:0\r\n",
  "a slot without end": `-MOVED ${"1".repeat(100_000)} 127.0.0.1:1\r\n`,
  "an address without end": flood("-MOVED 1 ", "a"),
  "a migration": (socket, own) => socket.write(`-ASK 1 127.0.0.1:${own}\r\n`),
  "an array of impossible length": `*${"9".repeat(18)}\r\n`,
  "numbers without end": flood("", ":1\r\n"),
  "a secret": "-ERR of-the-test \u001b[31m\r\n",
};

/** Runs all cases concurrently, since each waits for a second. */
async function allEnd(
  answers: Readonly<Record<string, HostileAnswer>>,
  place: Omit<StatePlace, "server">,
  holds: (heard: HostileServer["heard"], opened: number, name: string) => void,
): Promise<void> {
  const before = process.memoryUsage().rss;
  await Promise.all(
    Object.entries(answers).map(async ([name, answer]) => {
      try {
        const server = await startHostileStateServer(answer, { polite: true });
        holds(server.heard, await expectHarmlessState(server, place), name);
      } catch (error) {
        throw new Error(name, { cause: error });
      }
    }),
  );
  expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 ** 2);
}

test(
  "whatever a hostile sentinel answers, there is one warning, and no sentinel gets the servers' password",
  { timeout: 30_000 },
  async () => {
    await allEnd(SENTINELS, { sentinel: { name: "mine" } }, (heard, _, name) => {
      // A sentinel that names itself is then used as a server.
      if (name !== "the sentinel itself") expect(heard.join("")).not.toContain("of-the-test");
    });
  },
);

test(
  "wherever a hostile cluster node redirects, there is one warning after three hops",
  { timeout: 30_000 },
  async () => {
    await allEnd(NODES, { cluster: true }, (_, opened) => {
      // Three per attempt, with a pause between attempts.
      expect(opened).toBeLessThan(40);
    });
  },
);
