/**
 * An operator at night: one server after another breaks under load. Within ten seconds `top` names it, everything else that
 * an operator may look at says the same, and once it is repaired, nothing is left of it.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { missing } from "../support/program.ts";
import { until } from "../support/until.ts";
import { displaysOf, illIn, type Night, startNight } from "./night.ts";
import { expectSeen, type Fault } from "./night-faults.ts";
import { slapdMissing } from "./slapd-server.ts";

const reason = missing("redis-server") ?? slapdMissing;
let night: Night;
beforeAll(async () => {
  if (reason === undefined) night = await startNight();
});
afterAll(() => night?.[Symbol.asyncDispose]());

const escaped = (url: string): string => url.replaceAll(".", "\\.");

const FAULTS: Readonly<Record<string, () => Fault>> = {
  "the backend hangs": () => ({
    harm: () => night.backend.stop(),
    heal: () => night.backend.goOn(),
    row: new RegExp(`${escaped(night.backend.url)} (?:does not|no|has not) answer`),
  }),
  "the backend has ended": () => ({
    harm: () => night.backend.kill(),
    heal: () => night.backend.start(),
    row: new RegExp(`app ${escaped(night.backend.url)} ECONNREFUSED`),
    // Readiness does not depend on backends, unless admin.ready says so.
    without: ["verbose"],
  }),
  "the issuer is down": () => ({
    harm: () => night.issuer.stop(),
    heal: () => night.issuer.start(),
    row: new RegExp(
      `key set ${escaped(night.issuer.issuer)} 1 key, \\S+ old, and cannot be fetched`,
    ),
  }),
  "the state server is down": () => ({
    harm: () => night.redis.kill(),
    heal: () => night.redis.start(),
    row: /state server redis unavailable/,
  }),
  "the directory of users is down": () => ({
    harm: () => night.slapd.kill(),
    heal: () => night.slapd.start(),
    row: /user store ldap ECONNREFUSED/,
  }),
};

it.skipIf(reason !== undefined).each(Object.keys(FAULTS))("%s", async (name) => {
  const fault = FAULTS[name]?.();
  if (fault !== undefined) await expectSeen(night, fault);
});

it.skipIf(reason !== undefined)("the disk of the log is full", async ({ skip }) => {
  const { disk } = night;
  if (disk === undefined) return skip("no file system can be mounted");
  await expectSeen(night, {
    harm: () => disk.fill(),
    heal: () => disk.free(),
    row: /log standard output \d+ lines dropped since the start, ENOSPC/,
  });
});

it.skipIf(reason !== undefined)("Sallyport itself hangs", async () => {
  night.signal("SIGSTOP");
  try {
    const began = performance.now();
    await expect(night.top()).rejects.toThrow("did not answer within 5 s");
    expect(performance.now() - began).toBeLessThan(10_000);
    const { code, out } = await night.run("doctor");
    expect(code).toBe(1);
    expect(out.match(/^.*\b(?:server|admin)\.listen: .*$/gm)).toEqual([
      expect.stringContaining("is taken by a program that does not answer"),
      expect.stringContaining("is taken by a program that does not answer"),
    ]);
    expect(out).toContain("if it is Sallyport, it hangs");
    expect(await night.run("healthcheck")).toMatchObject({ code: 1 });
  } finally {
    night.signal("SIGCONT");
  }
  await until(async () => illIn(await night.top()).length === 0);
  expect((await displaysOf(night)).doctor).not.toContain("taken by a program");
});
