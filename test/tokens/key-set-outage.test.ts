/** How long the keys of an issuer stay in use while its key set cannot be fetched, also across a restart. */
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { TrustedKeyAddress } from "../../src/tokens/trusted/trusted-key-address.ts";
import type { KeySetAddress } from "../../src/tokens/trusted/trusted-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { setClock } from "./fixture.ts";
import { first, OTHER, provider, second } from "./trust.ts";

type Clock = ReturnType<typeof setClock>;

function open(address: KeySetAddress, clock: Clock = setClock(), issuer = OTHER) {
  const log = recordedLog();
  let changes = 0;
  const trusted = {
    issuer,
    audience: "theirs",
    jwks: address,
    algorithms: ["RS256"] as const,
    clockSkew: 0,
  };
  const changed = (): void => void (changes += 1);
  const context = { clock, log, changed, keepsCopies: true };
  const source = new TrustedKeyAddress(address, trusted, context);
  onTestFinished(() => source.close());
  const kids = () => source.current()?.map(({ kid }) => kid);
  return { source, log, kids, changes: () => changes };
}

async function cacheFile(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  return join(directory.path, "copy.json");
}

/** Writes a copy of the first key set, fetched now. */
async function copied(clock: Clock) {
  const file = await cacheFile();
  const { url, close } = await provider(first);
  const { source, kids } = open({ url, cacheFile: file }, clock);
  await until(() => kids() !== undefined);
  await until(() => readFile(file).then(Boolean, () => false));
  source.close();
  close();
  return { file, url };
}

test("keys stay in use for staleFor after their lifetime, and no longer", async () => {
  const clock = setClock();
  const { url, close } = await provider((_request, response) => {
    response.setHeader("cache-control", "max-age=120");
    response.end(first);
  });
  const { source, kids, log, changes } = open({ url, staleFor: 3_600_000 }, clock);
  await until(() => kids() !== undefined);
  close();
  expect(source.fetches).toMatchObject({ stale: false, succeeded: 1, failed: 0 });
  clock.advance(120_000);
  expect(kids()).toEqual(["one"]);
  expect(source.fetches.stale).toBe(true);
  await source.refresh("other");
  expect(source.fetches.failed).toBe(1);
  clock.advance(3_599_999);
  expect(kids()).toEqual(["one"]);
  expect(changes()).toBe(1);
  clock.advance(1);
  expect(kids()).toBeUndefined();
  expect(changes()).toBe(2);
  expect(log.lines.map(({ message }) => message)).toContain(
    "the keys of a trusted issuer are too old to be used",
  );
});

test("a copy serves a start during an outage at once; it is private, and bound to its issuer", async () => {
  const clock = setClock();
  const { file, url } = await copied(clock);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(open({ url, cacheFile: file }, clock).kids()).toEqual(["one"]);
  expect(open({ url: `${url}?`, cacheFile: file }, clock).kids()).toBeUndefined();
  expect(open({ url, cacheFile: file }, clock, "https://other.example").kids()).toBeUndefined();
});

test("a copy does not outlive the keys", async () => {
  const clock = setClock();
  const { file, url } = await copied(clock);
  clock.advance(600_000 + 59_999);
  const address = { url, cacheFile: file, staleFor: 60_000 };
  const { kids } = open(address, clock);
  expect(kids()).toEqual(["one"]);
  clock.advance(1);
  expect(kids()).toBeUndefined();
  expect(open(address, clock).kids()).toBeUndefined();
});

test("a copy that others can write to or that is invalid is not used, and the log says why", async () => {
  const clock = setClock();
  const { file, url } = await copied(clock);
  const good = await readFile(file, "utf8");
  const reasonOf = (): unknown => {
    const { kids, log } = open({ url, cacheFile: file }, clock);
    expect(kids()).toBeUndefined();
    const told = log.lines.find(({ message }) => message.includes("copy"));
    return told?.fields?.["reason"];
  };
  await chmod(file, 0o622);
  expect(reasonOf()).toBe("others can write to it");
  await chmod(file, 0o600);
  const parsed = JSON.parse(good) as Record<string, unknown>;
  for (const [content, reason] of [
    ["", "it is not a JSON object"],
    ["[]", "it is not a JSON object"],
    [good.replace("{", '{"issuer":"https://a.example",'), "it is not a JSON object"],
    [JSON.stringify({ ...parsed, issuer: "https://a.example" }), "it is a copy of other keys"],
    [JSON.stringify({ ...parsed, keys: 1 }), "it is not a copy of a key set"],
    [JSON.stringify({ ...parsed, fetchedAt: clock.now() + 61_000 }), "its times are impossible"],
    [JSON.stringify({ ...parsed, lifeMs: -1 }), "its times are impossible"],
    [JSON.stringify({ ...parsed, keys: "{}" }), "not a JSON Web Key Set"],
    [" ".repeat(524_289), "larger than 512KiB: is it the right file?"],
  ]) {
    await writeFile(file, content ?? "");
    expect(reasonOf()).toBe(reason);
  }
  await writeFile(file, JSON.stringify({ ...parsed, lifeMs: 1e12 }));
  clock.advance(3_600_000 + 86_400_000);
  // The bounds apply whatever lifetime the copy claims.
  expect(open({ url, cacheFile: file }, clock).kids()).toBeUndefined();
});

test("fetched keys replace a copy", async () => {
  const clock = setClock();
  const { file } = await copied(clock);
  const { url } = await provider(second);
  const { kids } = open({ url, cacheFile: file }, clock);
  await until(async () => (await readFile(file, "utf8")).includes('\\"two\\"'));
  expect(kids()).toEqual(["two"]);
});

test("a missing key is looked up less and less often, others as before", async () => {
  const clock = setClock();
  const { url, state } = await provider(first);
  const { source, kids } = open({ url }, clock);
  await until(() => kids() !== undefined);
  const asked: number[] = [];
  for (let second = 0; second < 100; second += 5) {
    const before = state.asked;
    await source.refresh("garbage");
    if (state.asked > before) asked.push(second);
    clock.advance(5_000);
  }
  expect(asked).toEqual([0, 5, 15, 35, 75]);
  await source.refresh("another");
  expect(state.asked).toBe(1 + asked.length + 1);
});
