import { expect, onTestFinished, test } from "vitest";
import type { UserRecord, UserStore } from "../../src/core/user-store.ts";
import { createCredentialCheck } from "../../src/credentials/credential-check.ts";
import { createHashingPool } from "../../src/credentials/hashing-pool.ts";
import { readPasswordHash } from "../../src/credentials/password-hash.ts";
import { cheapHash, STRANGER } from "./fixture.ts";

function user(name: string, password: string, more: Partial<UserRecord> = {}): UserRecord {
  return { name, password: cheapHash(password), groups: [], disabled: false, ...more };
}

function storeOf(...users: readonly UserRecord[]): UserStore {
  const byName = new Map(users.map((record) => [record.name, record]));
  return {
    find: (name) => byName.get(name),
    passwords: () => users.map(({ password }) => password),
  };
}

/** A check on real hashing threads, and every hash that they were asked about. */
function checkOf(...stores: readonly UserStore[]) {
  const pool = createHashingPool({ concurrency: 1, queue: 100 });
  onTestFinished(() => pool.close());
  const hashes: string[] = [];
  const passwords: string[] = [];
  const check = createCredentialCheck(stores, {
    verify(password, hash, origin) {
      passwords.push(password);
      hashes.push(hash);
      return pool.verify(password, hash, origin);
    },
  });
  return {
    check: (name: string, password: string) => check.check(name, password, STRANGER),
    hashes,
    passwords,
  };
}

const ALICE = user("alice", "apple", { groups: ["sales", "admin"] });
const BOB = user("bob", "banana", { disabled: true });

test("the right password gives the user with its groups, and nothing of its hash", async () => {
  const { check } = checkOf(storeOf(ALICE, BOB));
  expect(await check("alice", "apple")).toEqual({ name: "alice", groups: ["sales", "admin"] });
});

test("right, wrong, unknown, disabled and endless cost one verification each and are told apart by nobody", async () => {
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
    const found = await check(name, password);
    expect(found?.name).toBe(index === 0 ? "alice" : undefined);
    expect(hashes).toHaveLength(index + 1);
  }
  const own = [ALICE.password, BOB.password];
  expect(hashes.slice(0, 4)).toEqual([own[0], own[0], own[1], own[1]]);
  expect(hashes[7]).toBe(own[0]);
  for (const hash of hashes) expect(own).toContain(hash);
});

test("an unknown name gets the same hash each time, and unknown names get every hash of every store", async () => {
  const carol = user("carol", "cherry");
  const { check, hashes } = checkOf(storeOf(ALICE), storeOf(), storeOf(BOB, carol));
  const names = Array.from({ length: 60 }, (_, index) => `nobody${index}`);
  for (const name of [...names, ...names]) await check(name, "apple");
  expect(hashes.slice(60)).toEqual(hashes.slice(0, 60));
  expect(new Set(hashes)).toEqual(new Set([ALICE.password, BOB.password, carol.password]));
});

test("the password of the hash that an unknown name was given does not let it in", async () => {
  const { check, hashes } = checkOf(storeOf(ALICE));
  expect(await check("mallory", "apple")).toBeUndefined();
  expect(hashes).toEqual([ALICE.password]);
});

test("without any users there is still one verification, as dear as a new hash", async () => {
  const { check, hashes } = checkOf(storeOf());
  expect(await check("alice", "apple")).toBeUndefined();
  expect(hashes).toHaveLength(1);
  expect(readPasswordHash(hashes[0] ?? "")).not.toHaveProperty("refused");
  expect(hashes[0]).toContain("$m=19456,t=2,p=1$");
});

test("a password of 1024 bytes counts, a longer one is not even looked at", async () => {
  const long = "é".repeat(512);
  const { check, passwords } = checkOf(storeOf(user("dora", long), user("empty", "")));
  expect(await check("dora", long)).toMatchObject({ name: "dora" });
  expect(await check("dora", `${long}x`)).toBeUndefined();
  expect(await check("empty", "x".repeat(1025))).toBeUndefined();
  expect(passwords.slice(1)).toEqual(["", ""]);
});

test("the first store that knows a name decides", async () => {
  const { check } = checkOf(
    storeOf(user("erin", "first", { groups: ["one"] })),
    storeOf(user("erin", "second"), user("fred", "third")),
  );
  expect(await check("erin", "first")).toEqual({ name: "erin", groups: ["one"] });
  expect(await check("erin", "second")).toBeUndefined();
  expect(await check("fred", "third")).toMatchObject({ name: "fred" });
});

test("a full queue and an unreachable store are errors, not wrong passwords", async () => {
  const pool = createHashingPool({ concurrency: 1, queue: 0 });
  onTestFinished(() => pool.close());
  const { check } = createCredentialCheck([storeOf(ALICE)], pool);
  const first = check("alice", "apple", STRANGER);
  await expect(check("alice", "apple", STRANGER)).rejects.toMatchObject({
    code: "login_queue_full",
  });
  expect(await first).toMatchObject({ name: "alice" });

  const broken: UserStore = {
    find() {
      throw new Error("unreachable");
    },
    passwords: () => [],
  };
  await expect(
    createCredentialCheck([broken], pool).check("alice", "apple", STRANGER),
  ).rejects.toThrow();
});
