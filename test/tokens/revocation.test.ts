import { expect, test } from "vitest";
import type { IdentityClaims } from "../../src/core/request/identity.ts";
import type { Revocation } from "../../src/core/revocation.ts";
import { FileContent } from "../../src/lib/files/regular-file.ts";
import { readRevocationFile } from "../../src/tokens/revocation/revocation-service.ts";
import { RevocationList } from "../../src/tokens/revocation/revocation-list.ts";
import { NOW, ownKeys, signerOf, tokenOf, verifierFor } from "./fixture.ts";
import { jwkOf, jwksOf, OTHER, provider, rsa, signer, theirs } from "./trust.ts";
import { subjectUntilNow, tokenOf as revocationOf } from "../../src/app/revoking.ts";

const MS = NOW * 1000;
const alice: IdentityClaims = {
  subject: "alice",
  issuer: "sallyport",
  groups: [],
  tokenId: "a1",
  issuedAt: NOW,
  expiresAt: NOW + 600,
  acceptedUntil: MS + 600_000,
};
const of = (...added: readonly Revocation[]): RevocationList => {
  const list = new RevocationList();
  list.take({ added });
  return list;
};
const until = MS + 1_000;

test.each<[string, Revocation, Partial<IdentityClaims>, string | undefined]>([
  ["its jti", { kind: "token", name: "a1", until }, {}, "token"],
  ["another jti", { kind: "token", name: "A1", until }, {}, undefined],
  ["no jti at all", { kind: "token", name: "undefined", until }, { tokenId: undefined }, undefined],
  [
    "its subject, issued before",
    { kind: "subject", name: "alice", before: MS + 1, until },
    {},
    "subject",
  ],
  [
    "its subject, issued at that time",
    { kind: "subject", name: "alice", before: MS, until },
    {},
    undefined,
  ],
  [
    "its subject, issued nobody knows when",
    { kind: "subject", name: "alice", before: 1, until },
    { issuedAt: undefined },
    "subject",
  ],
  [
    "its subject and issuer",
    { kind: "subject", name: "alice", issuer: "sallyport", before: MS + 1, until },
    {},
    "subject",
  ],
  [
    "its subject of another issuer",
    { kind: "subject", name: "alice", issuer: "other", before: MS + 1, until },
    {},
    undefined,
  ],
  ["another subject", { kind: "subject", name: "Alice", before: MS + 1, until }, {}, undefined],
  [
    "a member of objects",
    { kind: "subject", name: "alice", before: MS + 1, until },
    { subject: "constructor" },
    undefined,
  ],
  ["everything before", { kind: "everything", name: "", before: MS + 1, until }, {}, "everything"],
  [
    "everything until it was issued",
    { kind: "everything", name: "", before: MS, until },
    {},
    undefined,
  ],
])("%s", (_what, revocation, claims, by) => {
  expect(of(revocation).covering({ ...alice, ...claims })).toBe(by);
});

test("the wider of two revocations holds, in either order", () => {
  const narrow: Revocation = { kind: "subject", name: "alice", before: MS, until };
  const wide: Revocation = { kind: "subject", name: "alice", before: MS + 1, until };
  for (const both of [
    [narrow, wide],
    [wide, narrow],
  ]) {
    expect(of(...both).covering(alice)).toBe("subject");
  }
});

test("the current second is revoked as a whole", () => {
  const list = of(subjectUntilNow("alice", undefined, MS + 10));
  expect(list.covering({ ...alice, issuedAt: NOW })).toBe("subject");
  expect(list.covering({ ...alice, issuedAt: NOW + 1 })).toBeUndefined();
});

test("a token without jti, or without room for it, revokes its whole subject", () => {
  expect(revocationOf(alice, false, MS)).toEqual({
    kind: "token",
    name: "a1",
    until: alice.acceptedUntil,
  });
  for (const [caller, full] of [
    [{ ...alice, tokenId: undefined }, false],
    [alice, true],
  ] as const) {
    const revocation = revocationOf(caller, full, MS);
    expect(revocation).toMatchObject({ kind: "subject", name: "alice", issuer: "sallyport" });
    expect(of(revocation).covering(caller)).toBe("subject");
  }
});

test("entries are forgotten when their tokens have expired, however many there are", () => {
  const many = Array.from({ length: 12_000 }, (_, at): Revocation => ({
    kind: "token",
    name: `t${at}`,
    until: at % 2 === 0 ? until : until + 5_000,
  }));
  const list = of(...many, { kind: "subject", name: "alice", before: MS, until });
  for (let round = 0; round < 20; round += 1) list.forget(until - 1);
  expect(list.size).toBe(12_001);
  for (let round = 0; round < 20; round += 1) list.forget(until);
  expect(list.size).toBe(6_000);
  list.take({ listed: [{ kind: "token", name: "forever" }] });
  for (let round = 0; round < 20; round += 1) list.forget(until + 1e12);
  expect(list.size).toBe(1);
});

test("another list that applies the same changes is equal", () => {
  const list = of({ kind: "token", name: "a1", until });
  list.take({ listed: [{ kind: "everything", name: "", before: MS }] });
  const copy = new RevocationList();
  for (const news of structuredClone(list.news())) copy.take(news);
  expect(copy.news()).toEqual(list.news());
});

const fileOf = (text: string): FileContent =>
  new FileContent({
    path: "revoked.yaml",
    bytes: Buffer.from(text),
    stats: { mode: 0, uid: 0, mtimeMs: 0 },
    readAt: 0,
  });

test("reads all keys of the file; an empty file is an empty list", () => {
  const text =
    'jti: [a, "1"]\nsubjects:\n  alice: 2026-11-22T10:00:00Z\nbefore: 2026-11-22T11:00:00+01:00';
  const time = Date.parse("2026-11-22T10:00:00Z");
  expect(readRevocationFile(fileOf(text))).toEqual([
    { kind: "token", name: "a" },
    { kind: "token", name: "1" },
    { kind: "subject", name: "alice", before: time },
    { kind: "everything", name: "", before: time },
  ]);
  expect(readRevocationFile(fileOf("# nothing\n"))).toEqual([]);
});

test.each([
  ["jti: a", "1:6"],
  ["jti: [1]", "1:7"],
  ["subjects: [alice]", "1:11"],
  ["subjects:\n  alice: yesterday", "2:10"],
  ["subjects:\n  alice: 2026-11-22", "2:10"],
  ["before: 12", "1:9"],
  ["jtis: []", "1:1"],
  ["- a", "1:1"],
  ["jti: [", "1:7"],
])("the file %j is refused with the position", (text, place) => {
  expect(() => readRevocationFile(fileOf(text))).toThrow(`revoked.yaml:${place}: `);
});

test("a token that is revoked while its keys are fetched is not let in", async () => {
  const revocations = new RevocationList();
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const { url } = await provider((_request, response) => {
    asked.resolve();
    void answer.promise.then(() => response.end(jwksOf(jwkOf(rsa.publicKey, { kid: "one" }))));
  });
  const trusted = {
    issuer: OTHER,
    audience: "theirs",
    jwks: { url },
    algorithms: ["RS256"] as const,
  };
  const { verifier } = verifierFor(await ownKeys(), {
    trusted: [{ ...trusted, clockSkew: 0 }],
    revocations,
  });
  const verdict = verifier.verify(await tokenOf(signer, { ...theirs, jti: "stolen" }));
  await asked.promise;
  revocations.take({ added: [{ kind: "token", name: "stolen", until: MS + 600_000 }] });
  answer.resolve();
  expect(await verdict).toBe("revoked");
});

test("a cached token is refused on its connection and on others, and other tokens stay cached", async () => {
  const keys = await ownKeys();
  const revocations = new RevocationList();
  const { verifier, cache } = verifierFor(keys, { revocations });
  const [one, two] = [
    await tokenOf(signerOf(keys), { jti: "one" }),
    await tokenOf(signerOf(keys), { jti: "two" }),
  ];
  const [here, there] = [{}, {}];
  for (const token of [one, two]) {
    for (const connection of [here, there, here]) await verifier.verify(token, connection);
  }
  await verifier.verify(one, here);
  const misses = cache.miss;
  revocations.take({ added: [{ kind: "token", name: "one", until: MS + 600_000 }] });
  expect(verifier.verify(one, here)).toBe("revoked");
  expect(verifier.verify(one, there)).toBe("revoked");
  expect(verifier.verify(one)).toBe("revoked");
  expect(await verifier.verify(two, here)).toMatchObject({ tokenId: "two" });
  expect(cache.miss).toBe(misses);
});

test("a closed verifier no longer receives changes", async () => {
  const revocations = new RevocationList();
  const listen = revocations.onChange.bind(revocations);
  let listening = 0;
  revocations.onChange = (listener) => {
    listening += 1;
    const stop = listen(listener);
    return () => {
      listening -= 1;
      stop();
    };
  };
  const { verifier } = verifierFor(await ownKeys(), { revocations });
  expect(listening).toBe(1);
  verifier.close();
  expect(listening).toBe(0);
});
