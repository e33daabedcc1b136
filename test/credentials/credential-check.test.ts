import { expect, onTestFinished, test } from "vitest";
import { createCredentialCheck as createCheck } from "../../src/credentials/login-service.ts";
import { HashingPool, type PasswordVerifier } from "../../src/credentials/hashing/hashing-pool.ts";
import { readPasswordHash } from "../../src/credentials/hashing/password-hash.ts";
import { hashStore, type UserRecord } from "../../src/credentials/stores/hash-store.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import type { UserStore } from "../../src/credentials/stores/user-store.ts";
import { cheapHash, STRANGER } from "./fixture.ts";

function user(name: string, password: string, more: Partial<UserRecord> = {}): UserRecord {
  const outdated = "argon2id with m=64,t=1";
  return { name, password: cheapHash(password), outdated, groups: [], disabled: false, ...more };
}

function createCredentialCheck(stores: readonly UserStore[], verifier: PasswordVerifier) {
  const observer = { storeAnswered: () => undefined, outdatedHashUsed: () => undefined };
  const observed = stores.map((store, place) => ({ name: `store_${place}`, store }));
  return createCheck(observed, verifier, { log: recordedLog(), clock: systemClock, observer });
}

type StoreOn = (verifier: PasswordVerifier) => UserStore;

function storeOf(...users: readonly UserRecord[]): StoreOn {
  const byName = new Map(users.map((record) => [record.name, record]));
  const passwords = users.map(({ password }) => password);
  return (verifier) =>
    hashStore({ find: (name) => byName.get(name), passwords: () => passwords }, verifier);
}

/** A check with real hashing threads, and a record of every hash that they verified. */
function checkOf(...stores: readonly StoreOn[]) {
  const pool = new HashingPool({ concurrency: 1, queue: 100 });
  onTestFinished(() => pool.close());
  const hashes: string[] = [];
  const passwords: string[] = [];
  const verifier: PasswordVerifier = {
    verify(password, hash, origin) {
      passwords.push(password);
      hashes.push(hash);
      return pool.verify(password, hash, origin);
    },
  };
  const opened = stores.map((store) => store(verifier));
  const check = createCredentialCheck(opened, verifier);
  return {
    check: (name: string, password: string) => check.check(name, password, STRANGER),
    hashes,
    passwords,
  };
}

const ALICE = user("alice", "apple", { groups: ["sales", "admin"] });
const BOB = user("bob", "banana", { disabled: true });

test("the right password returns the user with its groups, but not its hash", async () => {
  const { check } = checkOf(storeOf(ALICE, BOB));
  expect(await check("alice", "apple")).toEqual({
    result: "found",
    user: { name: "alice", groups: ["sales", "admin"] },
    // The tests hash cheaply.
    outdated: "argon2id with m=64,t=1",
  });
});

test("right, wrong, unknown, disabled, and overlong each cost one verification and are indistinguishable", async () => {
  const { check, hashes } = checkOf(storeOf(ALICE, BOB));
  const attempts = [
    ["alice", "apple"],
    ["alice", "wrong"],
    ["bob", "banana"],
    ["bob", "wrong"],
    ["carol", "apple"],
    ["__proto__", "apple"],
    ["", ""],
    ["alice", "x".repeat(1025)],
    ["carol", "x".repeat(1025)],
  ] as const;
  for (const [index, [name, password]] of attempts.entries()) {
    const verdict = await check(name, password);
    expect(verdict.result).toBe(index === 0 ? "found" : "wrong");
    expect(hashes).toHaveLength(index + 1);
  }
  const own = [ALICE.password, BOB.password];
  expect(hashes.slice(0, 4)).toEqual([own[0], own[0], own[1], own[1]]);
  expect(hashes[7]).toBe(own[0]);
  for (const hash of hashes) expect(own).toContain(hash);
});

test("an unknown name always gets the same decoy, and all unknown names together use every hash of every store", async () => {
  const carol = user("carol", "cherry");
  const { check, hashes } = checkOf(storeOf(ALICE), storeOf(), storeOf(BOB, carol));
  const names = Array.from({ length: 60 }, (_, index) => `nobody${index}`);
  for (const name of [...names, ...names]) await check(name, "apple");
  expect(hashes.slice(60)).toEqual(hashes.slice(0, 60));
  expect(new Set(hashes)).toEqual(new Set([ALICE.password, BOB.password, carol.password]));
});

test("the password of its decoy does not let an unknown name in", async () => {
  const { check, hashes } = checkOf(storeOf(ALICE));
  expect(await check("mallory", "apple")).toEqual({ result: "wrong" });
  expect(hashes).toEqual([ALICE.password]);
});

test("without any users there is still one verification, as expensive as a new hash", async () => {
  const { check, hashes } = checkOf(storeOf());
  expect(await check("alice", "apple")).toEqual({ result: "wrong" });
  expect(hashes).toHaveLength(1);
  expect(readPasswordHash(hashes[0] ?? "")).not.toHaveProperty("refused");
  expect(hashes[0]).toContain("$m=19456,t=2,p=1$");
});

test("a password of 1024 bytes is verified, a longer one is never verified", async () => {
  const long = "é".repeat(512);
  const { check, passwords } = checkOf(storeOf(user("dora", long), user("empty", "")));
  expect(await check("dora", long)).toMatchObject({ user: { name: "dora" } });
  expect(await check("dora", `${long}x`)).toEqual({ result: "wrong" });
  expect(await check("empty", "x".repeat(1025))).toEqual({ result: "wrong" });
  expect(passwords.slice(1)).toEqual(["", ""]);
});

test("the first store that knows a name decides", async () => {
  const { check } = checkOf(
    storeOf(user("erin", "first", { groups: ["one"] })),
    storeOf(user("erin", "second"), user("fred", "third")),
  );
  expect(await check("erin", "first")).toMatchObject({ user: { name: "erin", groups: ["one"] } });
  expect(await check("erin", "second")).toEqual({ result: "wrong" });
  expect(await check("fred", "third")).toMatchObject({ user: { name: "fred" } });
});

test("an unavailable store decides, and the stores after it are not queried", async () => {
  const asked: string[] = [];
  const silent: StoreOn = () => ({
    verify: (name) => {
      asked.push(name);
      return Promise.resolve({ result: "unavailable" });
    },
    decoys: { count: () => 0, verify: () => Promise.resolve() },
  });
  const { check, hashes } = checkOf(storeOf(ALICE), silent, storeOf(BOB, user("dora", "damson")));
  expect(await check("dora", "damson")).toEqual({ result: "unavailable" });
  expect(await check("nobody", "damson")).toEqual({ result: "unavailable" });
  expect(hashes).toEqual([]);
  expect(await check("alice", "apple")).toMatchObject({ result: "found" });
  expect(asked).toEqual(["dora", "nobody"]);
});

test("an unknown name costs as much as a wrong password in one of the stores, chosen in proportion to their users", async () => {
  const spent = { server: 0 };
  const server: StoreOn = () => ({
    verify: () => Promise.resolve({ result: "unknown" }),
    decoys: {
      count: () => 2,
      verify: async () => {
        spent.server += 1;
      },
    },
  });
  const { check, hashes } = checkOf(storeOf(ALICE, BOB), server);
  for (let index = 0; index < 60; index += 1) await check(`nobody${index}`, "apple");
  expect(hashes.length + spent.server).toBe(60);
  expect(spent.server).toBeGreaterThan(15);
  expect(hashes.length).toBeGreaterThan(15);
});

test("a full queue and a failing store are errors, not wrong passwords", async () => {
  const pool = new HashingPool({ concurrency: 1, queue: 0 });
  onTestFinished(() => pool.close());
  const { check } = createCredentialCheck([storeOf(ALICE)(pool)], pool);
  const first = check("alice", "apple", STRANGER);
  await expect(check("alice", "apple", STRANGER)).rejects.toMatchObject({
    code: "login_queue_full",
  });
  expect(await first).toMatchObject({ user: { name: "alice" } });

  const failing = hashStore(
    { find: () => Promise.reject(new Error("broken")), passwords: () => [] },
    pool,
  );
  await expect(
    createCredentialCheck([failing], pool).check("alice", "apple", STRANGER),
  ).rejects.toThrow("broken");
});

test("a hash that differs each time it is looked up makes the store unavailable", async () => {
  const passwords = (): readonly string[] => [];
  const { check, hashes } = checkOf((verifier) =>
    hashStore({ find: () => user("alice", "apple"), passwords }, verifier),
  );
  expect(await check("alice", "apple")).toEqual({ result: "unavailable" });
  expect(hashes).toHaveLength(3);
  expect(await check("alice", "wrong")).toEqual({ result: "wrong" });
});
