/** Faults of a SQLite file in use: each leads to 503, never to the result of another store, and needs no restart. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { cheapHash } from "../credentials/fixture.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { imageFlags } from "../support/image-flags.ts";
import { missing } from "../support/program.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { logInAt } from "./replicas.ts";
import { smallDisk } from "./small-disk.ts";

const ROWS = 300;
const QUERY = "SELECT password_hash FROM users WHERE name = $1";
const BOB = { name: "bob", password: "banana" };
const BOBS_HASH = cheapHash(BOB.password);
/** Known only to the last store. */
const DAVE = { name: "dave", password: "damson" };

/** Creates a database with bob among many others, and renames it into place. */
function write(path: string, hash = BOBS_HASH, journal = "DELETE"): void {
  const beside = `${path}.new`;
  rmSync(beside, { force: true });
  const database = new DatabaseSync(beside);
  database.exec("CREATE TABLE users (name TEXT PRIMARY KEY, password_hash, note)");
  const insert = database.prepare("INSERT INTO users VALUES (?, ?, ?)");
  database.exec("BEGIN");
  for (let row = 0; row < ROWS; row += 1) insert.run(`u${row}`, BOBS_HASH, "x".repeat(200));
  insert.run(BOB.name, hash, "");
  database.exec(`COMMIT; PRAGMA journal_mode=${journal}`);
  database.close();
  renameSync(beside, path);
}

/** Opens a database and executes statements. The caller closes it. */
function opened(path: string, ...statements: readonly string[]): DatabaseSync {
  const database = new DatabaseSync(path);
  for (const each of statements) database.exec(each);
  return database;
}

/** Causes a fault. @returns a function that repairs it. */
type Fault = (path: string) => () => void;

const overwritten =
  (bytes: (path: string) => Buffer): Fault =>
  (path) => {
    writeFileSync(path, bytes(path));
    return () => write(path);
  };

const FAULTS: Readonly<Record<string, Fault>> = {
  "locked by a writer": (path) => {
    const writer = opened(path, "BEGIN EXCLUSIVE");
    return () => writer.close();
  },
  "locked by a writer in WAL mode": (path) => {
    const writer = opened(
      path,
      ...["PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL"],
      ...["BEGIN IMMEDIATE", "UPDATE users SET note = 'y'"],
    );
    return () => writer.close();
  },
  "left by a writer that ended within a transaction": (path) => {
    const copy = `${path}.copy`;
    copyFileSync(path, copy);
    const spill = ["PRAGMA cache_size=2", "BEGIN", "UPDATE users SET note = 'z' || note"];
    const writer = opened(copy, ...spill);
    copyFileSync(`${copy}-journal`, `${path}-journal`);
    copyFileSync(copy, path);
    writer.close();
    return () => opened(path, "UPDATE users SET note = 'v'").close();
  },
  deleted: (path) => {
    rmSync(path);
    return () => write(path);
  },
  "replaced by a directory": (path) => {
    rmSync(path);
    mkdirSync(path);
    return () => {
      rmSync(path, { recursive: true });
      write(path);
    };
  },
  emptied: overwritten(() => Buffer.alloc(0)),
  "cut in half": overwritten((path) => readFileSync(path).subarray(0, 40_000)),
  "replaced by a text": overwritten(() => Buffer.from("users:\n  bob: {}\n".repeat(300))),
  "full of zeros behind its first page": overwritten((path) => {
    const bytes = readFileSync(path);
    return bytes.fill(0, 4_096);
  }),
  "without its table": (path) => {
    opened(path, "ALTER TABLE users RENAME TO gone").close();
    return () => opened(path, "ALTER TABLE gone RENAME TO users").close();
  },
};

/** Starts Sallyport with three stores: a file, the database, and another file that also has bob. */
async function startGate(path: string, flags = imageFlags()): Promise<Sallyport> {
  const backend = await startEchoBackend();
  onTestFinished(() => backend.close());
  const usersOf = (...users: readonly { name: string; password: string }[]) =>
    JSON.stringify({
      users: Object.fromEntries(
        users.map(({ name, password }) => [name, { password: cheapHash(password) }]),
      ),
    });
  const gate = await startSallyport({
    target: backend.url,
    flags,
    config: {
      server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
      users: [
        { kind: "file", path: "users.yaml" },
        { kind: "sqlite", path, query: QUERY },
        { kind: "file", path: "more.yaml" },
      ],
    },
    files: {
      "users.yaml": usersOf({ name: ALICE.username, password: ALICE.password }),
      "more.yaml": usersOf({ name: BOB.name, password: "of the next store" }, DAVE),
    },
  });
  onTestFinished(() => gate.close());
  return gate;
}

async function startDirectory(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const path = join(directory.path, "users.db");
  write(path);
  return path;
}

let addresses = 0;
/** Logs in from a new address each time, so that the throttle does not interfere. */
const logIn = (gate: Sallyport, name: string, password: string) =>
  logInAt(gate, name, password, `198.51.100.${(addresses = (addresses + 1) % 250)}`);

/** Expects 503 for logins that need the database or the store after it. */
async function expectUnavailable(gate: Sallyport): Promise<void> {
  const refused = [
    await logIn(gate, BOB.name, BOB.password),
    await logIn(gate, BOB.name, "of the next store"),
    await logIn(gate, DAVE.name, DAVE.password),
    await logIn(gate, "nobody", "x"),
  ];
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 503));
  expect(refused.every(({ retryAfter }) => Number(retryAfter) >= 1)).toBe(true);
  // Users of the first store, and requests with a token, are not affected.
  expect((await logIn(gate, ALICE.username, ALICE.password)).status).toBe(200);
  expect((await ask({ port: gate.port }, "/x", { token: gate.token })).status).toBe(200);
  const errors = () => gate.log().filter((line) => line["level"] === "error");
  await until(() => errors().length > 0);
  expect(errors()).toMatchObject([{ store: "sqlite", reason: expect.stringMatching(/\S/) }]);
  const log = JSON.stringify(gate.log()) + gate.stderr();
  for (const secret of [BOB.password, DAVE.password, BOBS_HASH, "of the next"]) {
    expect(log).not.toContain(secret);
  }
}

async function expectAvailable(gate: Sallyport): Promise<void> {
  expect((await logIn(gate, BOB.name, BOB.password)).status).toBe(200);
  expect((await logIn(gate, BOB.name, "of the next store")).status).toBe(401);
  expect((await logIn(gate, DAVE.name, DAVE.password)).status).toBe(200);
}

describe("a SQLite file, between two other stores", () => {
  test.each(Object.entries(FAULTS))("%s", { timeout: 40_000 }, async (_fault, harm) => {
    const path = await startDirectory();
    const gate = await startGate(path);
    await expectAvailable(gate);
    const heal = harm(path);
    await expectUnavailable(gate);
    heal();
    await expectAvailable(gate);
    await until(() => gate.log().some((line) => line["msg"] === "a user store is available again"));
  });

  test.skipIf(missing("setpriv") !== undefined)("without read permission", async () => {
    const path = await startDirectory();
    // Root may read everything, unless it drops that capability.
    const flags = process.getuid?.() === 0 ? [...imageFlags(), mortal()] : imageFlags();
    const gate = await startGate(path, flags);
    await expectAvailable(gate);
    chmodSync(path, 0);
    await expectUnavailable(gate);
    chmodSync(path, 0o600);
    await expectAvailable(gate);
  });

  test(
    "truncated anywhere, gives the right result or 503, but never 401",
    { timeout: 60_000 },
    async () => {
      const path = await startDirectory();
      const gate = await startGate(path);
      const { length } = readFileSync(path);
      const statuses = new Set<number>();
      for (let size = 0; size < length; size += 5_000) {
        write(path);
        truncateSync(path, size);
        const { status } = await logIn(gate, BOB.name, BOB.password);
        expect([size, status]).not.toEqual([size, 401]);
        statuses.add(status);
      }
      expect([...statuses]).toContain(503);
      write(path);
      await expectAvailable(gate);
    },
  );

  test("replaced by another file, is used from the next login on", async () => {
    const path = await startDirectory();
    const gate = await startGate(path);
    await expectAvailable(gate);
    write(path, cheapHash("blueberry"));
    expect((await logIn(gate, BOB.name, "blueberry")).status).toBe(200);
    expect((await logIn(gate, BOB.name, BOB.password)).status).toBe(401);
  });

  test("in WAL mode, logins read committed data during writes and before a checkpoint", async () => {
    const path = await startDirectory();
    write(path, BOBS_HASH, "WAL");
    const gate = await startGate(path);
    await expectAvailable(gate);
    const writer = opened(path, "PRAGMA wal_autocheckpoint=0", "BEGIN IMMEDIATE");
    onTestFinished(() => writer.close());
    writer.prepare("UPDATE users SET password_hash = ?").run(cheapHash("blueberry"));
    await expectAvailable(gate);
    writer.exec("COMMIT");
    expect((await logIn(gate, BOB.name, "blueberry")).status).toBe(200);
    expect((await logIn(gate, BOB.name, BOB.password)).status).toBe(401);
  });
});

const possible = await smallDisk();
await possible?.[Symbol.asyncDispose]();

test.skipIf(possible === undefined)(
  "in WAL mode on a full disk, logins get 503 until there is space",
  async () => {
    const disk = await smallDisk();
    if (disk === undefined) throw new Error("no disk");
    onTestFinished(() => disk[Symbol.asyncDispose]());
    const path = join(disk.path, "users.db");
    write(path, BOBS_HASH, "WAL");
    const gate = await startGate(path);
    await expectAvailable(gate);
    // The shared files exist while the database is open; the next connection creates them again.
    for (const shared of ["-shm", "-wal"]) rmSync(path + shared, { force: true });
    disk.fill();
    await expectUnavailable(gate);
    disk.free();
    await expectAvailable(gate);
  },
);

/** Returns a flag with which Node restarts itself as root without the capability to read any file. */
function mortal(): string {
  const setpriv = execFileSync("/bin/sh", ["-c", "command -v setpriv"], {
    encoding: "utf8",
  }).trim();
  const code = `const flags = process.execArgv.filter((flag) => !flag.startsWith("--import"));
const rights = "--bounding-set=-dac_override,-dac_read_search";
process.execve(${JSON.stringify(setpriv)}, ["setpriv", rights, process.execPath, ...flags, ...process.argv.slice(1)], process.env);`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}
