import { rm } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { GateError } from "../../src/core/request/errors.ts";
import { Identity } from "../../src/core/request/identity.ts";
import { type TrustedIssuer, TrustedKeys } from "../../src/tokens/trusted/trusted-keys.ts";
import { TrustedKeyAddress } from "../../src/tokens/trusted/trusted-key-address.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { until } from "../support/until.ts";
import { setClock, signerOf, tokenOf } from "./fixture.ts";
import {
  ec,
  first,
  jwkOf,
  jwksOf,
  laterSigner,
  OTHER,
  own,
  provider,
  second,
  signer,
  theirs,
  trusting,
  trustingFile,
} from "./trust.ts";

describe("keys from a file", () => {
  test("a file that cannot be used at startup is a configuration error", async () => {
    for (const broken of ["", "{}", "[]", '{"keys":{}}', '{"keys":[],"keys":[]}', "secret"]) {
      await expect(trustingFile(broken)).rejects.toBeInstanceOf(ConfigError);
    }
    expect(() => trusting({ file: "/nowhere/jwks.json" })).toThrow(ConfigError);
  });

  test("tokens of a removed key are refused, cached or not", async () => {
    const { verifier, replace } = await trustingFile(first);
    const token = await tokenOf(signer, theirs);
    const ours = await tokenOf(signerOf(own));
    await verifier.verify(token);
    await verifier.verify(ours);
    expect(verifier.entries()).toBe(2);
    await replace(second);
    // Tokens whose key remains stay cached.
    await until(() => verifier.entries() === 1);
    expect(await verifier.verify(token)).toBe("unknown_key");
    expect(Identity.is(await verifier.verify(ours))).toBe(true);
    expect(Identity.is(await verifier.verify(await tokenOf(laterSigner, theirs)))).toBe(true);
  });

  test("an invalid or missing file keeps the old keys and is logged", async () => {
    const { verifier, log, file, replace } = await trustingFile(first);
    const token = await tokenOf(signer, theirs);
    await verifier.verify(token);
    const errors = (): number => log.lines.filter(({ level }) => level === "error").length;
    await replace('{"keys":[');
    await until(() => errors() === 1);
    await rm(file);
    await until(() => errors() === 2);
    expect(verifier.entries()).toBe(1);
    expect(Identity.is(await verifier.verify(await tokenOf(signer, { ...theirs, n: 1 })))).toBe(
      true,
    );
    await replace(second);
    await until(() => verifier.entries() === 0);
  });
});

describe("keys from an address", () => {
  test("a token that arrives before the keys waits for them", async () => {
    const { url, state } = await provider((_request, response) => {
      setImmediate(() => response.end(first));
    });
    const { verifier } = trusting({ url });
    const token = await tokenOf(signer, theirs);
    const results = await Promise.all([verifier.verify(token), verifier.verify(token)]);
    expect(results.every(Identity.is)).toBe(true);
    expect(state.asked).toBe(1);
  });

  test("an unknown kid triggers a fetch, at most once in five seconds", async () => {
    const { url, state } = await provider(first);
    const { verifier, clock } = trusting({ url });
    expect(Identity.is(await verifier.verify(await tokenOf(signer, theirs)))).toBe(true);
    expect(await verifier.verify(await tokenOf(laterSigner, theirs))).toBe("unknown_key");
    expect(state.asked).toBe(2);
    state.answer = second;
    const token = await tokenOf(laterSigner, theirs);
    clock.advance(4_999);
    expect(await verifier.verify(token)).toBe("unknown_key");
    expect(state.asked).toBe(2);
    clock.advance(1);
    const strangers = Array.from({ length: 50 }, (_, each) =>
      tokenOf({ ...signer, kid: `stranger-${each}` }, theirs),
    );
    const verdicts = (await Promise.all(strangers)).map(async (stranger) =>
      verifier.verify(stranger),
    );
    expect(new Set(await Promise.all(verdicts))).toEqual(new Set(["unknown_key"]));
    expect(state.asked).toBe(3);
    expect(Identity.is(await verifier.verify(token))).toBe(true);
    expect(await verifier.verify(await tokenOf(signer, theirs))).toBe("unknown_key");
    expect(state.asked).toBe(3);
  });

  test("at most a hundred tokens wait for a fetch", async () => {
    const answers: (() => void)[] = [];
    const { url, state } = await provider((_request, response) => {
      answers.push(() => response.end(first));
    });
    const { verifier } = trusting({ url });
    const tokens = await Promise.all(
      Array.from({ length: 150 }, (_, n) => tokenOf(signer, { ...theirs, n })),
    );
    const verdicts = Promise.allSettled(tokens.map(async (token) => verifier.verify(token)));
    await until(() => answers.length === 1);
    answers[0]?.();
    const settled = await verdicts;
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(100);
    for (const each of settled) {
      if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "keys_unusable" });
    }
    expect(state.asked).toBe(1);
    expect(Identity.is(await verifier.verify(await tokenOf(signer, theirs)))).toBe(true);
  });

  test("more than 100 keys are refused without being parsed; 100 are accepted", async () => {
    const keys = (count: number): string =>
      jwksOf(...Array.from({ length: count }, (_, n) => jwkOf(ec.publicKey, { kid: `${n}` })));
    const { url, state } = await provider(keys(101));
    const { verifier, clock, log } = trusting({ url });
    const token = await tokenOf({ kid: "99", algorithm: "ES256", key: ec.privateKey }, theirs);
    await expect(verifier.verify(token)).rejects.toMatchObject({ code: "keys_unusable" });
    const told = log.lines.map(({ fields }) => fields?.["reason"]);
    expect(told).toContain("the key set has 101 keys, at most 100 are allowed");
    state.answer = keys(100);
    clock.advance(5_000);
    expect(Identity.is(await verifier.verify(token))).toBe(true);
  });

  test("an unchanged key set is not parsed again", async () => {
    const { url, state } = await provider(first);
    const parse = vi.spyOn(JSON, "parse");
    onTestFinished(() => parse.mockRestore());
    const readings = (): number => parse.mock.calls.filter(([text]) => text === first).length;
    const { verifier, clock } = trusting({ url });
    expect(Identity.is(await verifier.verify(await tokenOf(signer, theirs)))).toBe(true);
    for (let turn = 0; turn < 3; turn++) {
      clock.advance(5_000);
      const stranger = await tokenOf({ ...laterSigner, kid: `stranger-${turn}` }, theirs);
      expect(await verifier.verify(stranger)).toBe("unknown_key");
    }
    expect(state.asked).toBe(4);
    expect(readings()).toBe(1);
  });

  test("while the address is down the last good keys stay in use", async () => {
    const { url, state, close } = await provider(first);
    const { verifier, clock, log } = trusting({ url });
    const token = await tokenOf(signer, theirs);
    await verifier.verify(token);
    close();
    clock.advance(300_000);
    for (let turn = 0; turn < 3; turn++) {
      clock.advance(5_000);
      expect(await verifier.verify(await tokenOf(laterSigner, theirs))).toBe("unknown_key");
    }
    expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(verifier.entries()).toBe(1);
    expect(Identity.is(await verifier.verify(await tokenOf(signer, { ...theirs, n: 1 })))).toBe(
      true,
    );
    expect(state.asked).toBe(1);
  });

  test.each<[string, RequestListener | string]>([
    ["an error", (_request, response) => response.writeHead(500).end(first)],
    ["a redirect", (_request, response) => response.writeHead(302, { location: "/other" }).end()],
    ["a page", "<html>"],
    ["no set", '{"jwks":[]}'],
    ["too much", `${first}${" ".repeat(131_072)}`],
    ["a closed connection", (request) => request.socket.destroy()],
    [
      "half an answer",
      (_request, response) => {
        response.writeHead(200, { "content-length": 10_000 });
        response.write(first, () => response.destroy());
      },
    ],
  ])("%s is no valid response, so the token cannot be verified", async (_name, answer) => {
    const { url, state } = await provider(answer);
    const { verifier, clock } = trusting({ url });
    const token = await tokenOf(signer, theirs);
    await expect(verifier.verify(token)).rejects.toMatchObject({
      name: GateError.name,
      code: "keys_unusable",
      retryAfter: 5,
    });
    expect(Identity.is(await verifier.verify(await tokenOf(signerOf(own))))).toBe(true);
    // Once at startup and, if that has already failed, once for the token.
    expect(state.asked).toBeLessThanOrEqual(2);
    state.answer = first;
    clock.advance(5_000);
    expect(Identity.is(await verifier.verify(token))).toBe(true);
  });

  test("it is fetched again by itself: soon after a failure, and before the lifetime ends after a success", async () => {
    const { url, state } = await provider((_request, response) => response.writeHead(503).end());
    let changes = 0;
    const trusted: TrustedIssuer = {
      issuer: OTHER,
      audience: "theirs",
      jwks: { url },
      algorithms: ["RS256"],
      clockSkew: 0,
    };
    const source = new TrustedKeyAddress(
      { url },
      trusted,
      { clock: setClock(), log: recordedLog(), changed: () => void (changes += 1) },
      { life: { min: 20, usual: 20, max: 20 }, firstRetry: 5, lastRetry: 20, onDemand: 5 },
    );
    onTestFinished(() => source.close());
    await until(() => state.asked > 2);
    expect(source.current()).toBeUndefined();
    state.answer = first;
    await until(() => changes === 1);
    const { asked } = state;
    await until(() => state.asked > asked + 2);
    expect(changes).toBe(1);
    state.answer = second;
    await until(() => changes === 2);
    expect(source.current()?.map(({ kid }) => kid)).toEqual(["two"]);
  });
});

describe("a source shared by several verifiers", () => {
  const trusted = (jwks: TrustedIssuer["jwks"]): TrustedIssuer => ({
    issuer: OTHER,
    audience: "theirs",
    jwks,
    algorithms: ["RS256"],
    clockSkew: 0,
  });

  test("stays open until the last of them has closed it", async () => {
    const { url, state, close } = await provider(first);
    const shared = new TrustedKeys({ clock: setClock(), log: recordedLog() });
    const told: string[] = [];
    const one = shared.open(trusted({ url }), () => void told.push("one"));
    const two = shared.open(trusted({ url }), () => void told.push("two"));
    await until(() => told.length === 2);
    one.close();
    one.close();
    close();
    const three = shared.open(trusted({ url }), () => undefined);
    two.close();
    expect(three.current()?.map(({ kid }) => kid)).toEqual(["one"]);
    expect(state.asked).toBe(1);
    three.close();
    const four = shared.open(trusted({ url }), () => undefined);
    expect(four.current()).toBeUndefined();
    four.close();
  });

  test("is not shared for another address or other algorithms", async () => {
    const { url } = await provider(first);
    const shared = new TrustedKeys({ clock: setClock(), log: recordedLog() });
    const one = shared.open(trusted({ url }), () => undefined);
    onTestFinished(() => one.close());
    await until(() => one.current() !== undefined);
    const others = [
      { ...trusted({ url }), algorithms: ["ES256"] as const },
      trusted({ url: `${url}?` }),
    ];
    for (const other of others) {
      const source = shared.open(other, () => undefined);
      expect(source.current()).toBeUndefined();
      source.close();
    }
  });

  test("is fetched on demand, at most once in five seconds", async () => {
    const { url, state } = await provider(first);
    const clock = setClock();
    const shared = new TrustedKeys({ clock, log: recordedLog() });
    const source = shared.open(trusted({ url }), () => undefined);
    onTestFinished(() => source.close());
    await until(() => source.current() !== undefined);
    shared.refresh();
    await until(() => state.asked === 2);
    clock.advance(4_999);
    shared.refresh();
    expect(state.asked).toBe(2);
    clock.advance(1);
    // The last response may still be on its way, and only one fetch runs at a time.
    await until(() => {
      shared.refresh();
      return state.asked > 2;
    });
    expect(state.asked).toBe(3);
  });

  test("reports each reading of a file, until nobody uses it", async () => {
    const { file, replace, verifier } = await trustingFile(first);
    verifier.close();
    const told: (boolean | "gone")[] = [];
    const stateOf = () => ({
      reloaded: (problems: readonly string[]) => void told.push(problems.length === 0),
      removed: () => void told.push("gone"),
    });
    const shared = new TrustedKeys({ clock: setClock(), log: recordedLog(), stateOf });
    const source = shared.open(trusted({ file }), () => undefined);
    await replace("{");
    await until(() => told.length === 1);
    await replace(first);
    await until(() => told.length === 2);
    source.close();
    expect(told).toEqual([false, true, "gone"]);
  });
});
