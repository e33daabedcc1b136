import { describe, expect, onTestFinished, test } from "vitest";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { inspectStore, openUserStore } from "../../src/credentials/stores/store-kinds.ts";
import type { StoreSettings } from "../../src/credentials/stores/store-kinds.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { until } from "../support/until.ts";
import { contentOf, STRANGER } from "./fixture.ts";

export interface ContractUser {
  readonly name: string;
  readonly password: string;
  /** Omitted if the kind has no groups. */
  readonly groups?: readonly string[];
}

/** The source of a store, for one test. */
interface ContractSource {
  readonly settings: StoreSettings;
  /** Replaces the users by these. */
  hold(users: readonly ContractUser[]): Promise<void>;
  /** Makes the source unusable until the next `hold`. */
  fail(): Promise<void>;
}

export interface ContractKind {
  /** Cleans up through `onTestFinished`. */
  source(): Promise<ContractSource>;
  readonly hasGroups: boolean;
  /** How the store behaves while its source fails. */
  readonly failing: "unavailable" | "as before";
  /** Whether `inspect` returns the number of users. */
  readonly counts: boolean;
  /** Whether `inspect` examines the source. A remote one need not run while a configuration is checked. */
  readonly inspects: boolean;
  /** Unusual user names that the kind supports. */
  readonly oddNames: readonly string[];
}

/** The contract of every kind of user store, tested with a real source. */
export function userStoreContract(kind: ContractKind): void {
  const ALICE = { name: "alice", password: "apple", ...(kind.hasGroups && { groups: ["sales"] }) };
  const BOB = { name: "bob", password: "banana" };

  async function opened(...users: readonly ContractUser[]) {
    const source = await kind.source();
    await source.hold(users);
    const verifier = new HashingPool({ concurrency: 2, queue: 1000 });
    onTestFinished(() => verifier.close());
    const log = recordedLog();
    const open = await openUserStore(source.settings, {
      contentOf,
      log,
      verifier,
      clock: systemClock,
      queue: 1000,
    });
    onTestFinished(() => open.close());
    const store = { decoys: open.decoys, reload: () => open.reload(contentOf) };
    const verify = (name: string, password: string) => open.verify(name, password, STRANGER);
    return { source, store, verify, log };
  }

  test("the right password returns the user with its groups and nothing else", async () => {
    const { verify } = await opened(ALICE, BOB);
    const groups = kind.hasGroups ? ["sales"] : [];
    const alice = await verify("alice", "apple");
    expect(alice).toMatchObject({ result: "found" });
    expect(alice).toHaveProperty("user", { name: "alice", groups });
    expect(await verify("bob", "banana")).toHaveProperty("user", { name: "bob", groups: [] });
  });

  test.each([
    ["another's", "banana"],
    ["an empty one", ""],
    ["with an ending", "apple "],
    ["in capitals", "APPLE"],
    ["with a NUL", "apple\0"],
    ["too long", "apple".repeat(300)],
    ["a pattern", "*"],
  ])("a wrong password is wrong: %s", async (_what, password) => {
    const { verify } = await opened(ALICE, BOB);
    expect(await verify("alice", password)).toEqual({ result: "wrong" });
  });

  test("only the exact name is known, whatever else a query would match", async () => {
    const { verify } = await opened(ALICE, BOB);
    const strange = [
      ...["", "Alice", "alice ", " alice", "alice\0", "ali", "al*", "*", "alice)(uid=*", "#"],
      ...["alice' OR '1'='1", 'alice" --', "alice:apple", "alice\nbob", "\\61lice", "$1", "%"],
      ...["__proto__", "constructor", "toString", "a".repeat(100_000), "\ud800"],
    ];
    for (const name of strange) {
      expect([name.slice(0, 20), await verify(name, "apple")]).toEqual([
        name.slice(0, 20),
        { result: "unknown" },
      ]);
    }
  });

  test.runIf(kind.oddNames.length > 0)("unusual names are kept exactly", async () => {
    const users = kind.oddNames.map((name, index) => ({ name, password: `password ${index}` }));
    const { verify } = await opened(...users);
    for (const { name, password } of users) {
      expect(await verify(name, password)).toMatchObject({ result: "found", user: { name } });
    }
  });

  test("every decoy can be verified, and there are decoys as soon as there are users", async () => {
    const { store } = await opened(ALICE, BOB);
    const count = store.decoys.count();
    expect(count).toBeGreaterThan(0);
    for (let index = 0; index < count; index += 1) {
      await store.decoys.verify(index, "apple", STRANGER);
    }
  });

  test("concurrent logins do not mix", async () => {
    const users = Array.from({ length: 20 }, (_, n) => ({ name: `u${n}`, password: `p${n}` }));
    const { verify } = await opened(...users);
    const asked = users.flatMap(({ name }, n) => [
      verify(name, `p${n}`),
      verify(name, `p${n + 1}`),
    ]);
    const results = (await Promise.all(asked)).map(({ result }) => result);
    expect(results).toEqual(users.flatMap(() => ["found", "wrong"]));
  });

  describe("what changes", () => {
    test("added, removed, and changed users take effect without a reload", async () => {
      const { source, verify } = await opened(ALICE);
      await source.hold([{ ...ALICE, password: "apricot" }, BOB]);
      await until(async () => (await verify("bob", "banana")).result === "found");
      expect(await verify("alice", "apple")).toEqual({ result: "wrong" });
      await source.hold([BOB]);
      await until(async () => (await verify("alice", "apricot")).result === "unknown");
    });

    test("a reload applies them at once", async () => {
      const { source, store, verify } = await opened(ALICE);
      await source.hold([BOB]);
      await store.reload();
      expect(await verify("bob", "banana")).toMatchObject({ result: "found" });
      expect(await verify("alice", "apple")).toEqual({ result: "unknown" });
    });

    test(`a failing source: ${kind.failing}, and no secrets in the log`, async () => {
      const { source, store, verify, log } = await opened(ALICE);
      await source.fail();
      await store.reload();
      const { result } = await verify("alice", "apple");
      expect(result).toBe(kind.failing === "as before" ? "found" : "unavailable");
      const other = await verify("nobody", "apple");
      expect(other.result).toBe(kind.failing === "as before" ? "unknown" : "unavailable");
      expect(log.lines.some(({ level }) => level === "error")).toBe(true);
      expect(JSON.stringify(log.lines)).not.toMatch(/apple|\$2|\$argon/);
      await source.hold([BOB]);
      await store.reload();
      expect(await verify("bob", "banana")).toMatchObject({ result: "found" });
    });
  });

  test("inspection accepts what can be opened and refuses what cannot", async () => {
    const source = await kind.source();
    await source.hold([ALICE, BOB]);
    expect(await inspectStore(source.settings, contentOf)).toBe(kind.counts ? 2 : undefined);
    await source.fail();
    const inspected = inspectStore(source.settings, contentOf);
    if (kind.inspects) await expect(inspected).rejects.toMatchObject({ name: "ConfigError" });
    else expect(await inspected).toBeUndefined();
  });
}
