import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { SharedState } from "../../src/shared/shared-state.ts";
import { type StatePlace, stateServerAt } from "../../src/shared/state-server.ts";
import { listeningPort } from "../support/listening-port.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { until } from "../support/until.ts";

type Answer = string | Buffer | ((socket: Socket, own: number, command: string) => void);

/** A sentinel or a node that answers whatever it is asked with this, once it has let everybody in. */
async function startHostile(answer: Answer) {
  const sockets = new Set<Socket>();
  const heard: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("data", (data: Buffer) => {
      for (const command of data.toString("latin1").split(/(?=\*\d+\r\n\$)/)) {
        heard.push(command);
        if (/\r\n(?:auth|select|client)\r\n/i.test(command)) socket.write("+OK\r\n");
        else if (typeof answer === "function") answer(socket, listeningPort(server), command);
        else socket.write(answer);
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: listeningPort(server), heard, connections: () => sockets.size };
}

const flood =
  (start: string, piece: string) =>
  (socket: Socket): void => {
    const pieces = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
    socket.write(start);
    const more = (): void => {
      while (!socket.destroyed && socket.write(pieces));
    };
    socket.on("drain", more);
    more();
  };

const texts = (...each: readonly string[]): string =>
  `*${each.length}\r\n${each.map((text) => `$${text.length}\r\n${text}\r\n`).join("")}`;

const SENTINELS: Record<string, Answer> = {
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
  "an array that nobody has": `*${"9".repeat(18)}\r\n`,
  "a text without end": flood(`$${2 ** 29}\r\n`, "x"),
  "pieces without end": flood("", ":1\r\n"),
  "a redirection": "-MOVED 1 127.0.0.1:1\r\n",
  nobody: "*-1\r\n",
  nothing: "",
};

const NODES: Record<string, Answer> = {
  "itself, for ever": (socket, own) => socket.write(`-MOVED 1 127.0.0.1:${own}\r\n`),
  "itself without a host": (socket, own) => socket.write(`-MOVED 1 :${own}\r\n`),
  "no address": "-MOVED 1 nowhere\r\n",
  "an address with a path": "-MOVED 1 127.0.0.1/x:6379\r\n",
  "port 0": "-MOVED 1 127.0.0.1:0\r\n",
  "a slot without end": `-MOVED ${"1".repeat(100_000)} 127.0.0.1:1\r\n`,
  "an address without end": flood("-MOVED 1 ", "a"),
  "a migration": (socket, own) => socket.write(`-ASK 1 127.0.0.1:${own}\r\n`),
  "an array that nobody has": `*${"9".repeat(18)}\r\n`,
  "numbers without end": flood("", ":1\r\n"),
  "a secret": "-ERR of-the-test \u001b[31m\r\n",
};

/** A replica whose state is at a hostile place warns once, hears nothing, and nobody waits for it. */
async function ends(place: Omit<StatePlace, "server">, answer: Answer) {
  const { port, heard, connections } = await startHostile(answer);
  const log = recordedLog();
  const server = stateServerAt(`redis://:of-the-test@127.0.0.1:${port}`);
  const state = new SharedState({
    ...{ place: { server, ...place }, prefix: "test:", timeout: 50, log, clock: systemClock },
    observer: { sharedStateAsked: () => undefined },
  });
  const told: unknown[] = [];
  await state.begin(
    { attemptEnded: (...end) => told.push(end), revoked: (all) => told.push(all) },
    () => [],
  );
  const began = performance.now();
  const revocation = { kind: "token", name: "a", until: Date.now() + 60_000 } as const;
  expect(await state.revoke([revocation])).toBe(false);
  expect(await state.settling.rates([{ key: "a", costMs: 1 }])).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(1_000);
  await until(() => log.lines.some(({ level }) => level === "warn"), 15_000);
  const opened = connections();
  await state.close();
  expect(told).toEqual([]);
  expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
  expect(JSON.stringify(log.lines)).not.toMatch(/of-the-test|\\u001b/);
  return { heard, opened };
}

/** All at the same time, since each waits for a second. */
async function allEnd(
  answers: Readonly<Record<string, Answer>>,
  place: Omit<StatePlace, "server">,
  holds: (ended: Awaited<ReturnType<typeof ends>>, name: string) => void,
): Promise<void> {
  const before = process.memoryUsage().rss;
  await Promise.all(
    Object.entries(answers).map(async ([name, answer]) => {
      try {
        holds(await ends(place, answer), name);
      } catch (error) {
        throw new Error(name, { cause: error });
      }
    }),
  );
  expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 ** 2);
}

test(
  "whatever a sentinel names ends as one warning, and no sentinel gets the servers' password",
  { timeout: 30_000 },
  async () => {
    await allEnd(SENTINELS, { sentinel: { name: "mine" } }, ({ heard }, name) => {
      // One that names itself is asked as a server.
      if (name !== "the sentinel itself") expect(heard.join("")).not.toContain("of-the-test");
    });
  },
);

test(
  "wherever a node of a cluster sends, it ends as one warning after three hops",
  { timeout: 30_000 },
  async () => {
    await allEnd(NODES, { cluster: true }, ({ opened }) => {
      // Three for each attempt, and between two attempts is a pause.
      expect(opened).toBeLessThan(40);
    });
  },
);
