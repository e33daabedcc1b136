/** What every kind of revocation must fulfil. A kind without an example here does not compile. */
import { describe, expect, test } from "vitest";
import { revocationDetail } from "../../src/app/explanation/explained-token.ts";
import type { IdentityClaims } from "../../src/core/request/identity.ts";
import {
  NAMED_REVOCATIONS,
  type Revocation,
  REVOCATION_FORMS,
  REVOCATION_KINDS,
  type RevocationKindName,
} from "../../src/core/revocation.ts";
import { FileContent } from "../../src/lib/files/regular-file.ts";
import { type RevocationQuery, revokePage } from "../../src/server/admin/revoke-page.ts";
import { readEvent, writeRevocation } from "../../src/shared/wire.ts";
import { linesOf, readJournal } from "../../src/tokens/revocation/journal.ts";
import { readRevocationFile } from "../../src/tokens/revocation/revocation-service.ts";
import { RevocationList } from "../../src/tokens/revocation/revocation-list.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { NOW } from "./fixture.ts";

const MS = NOW * 1000;
const TIME = new Date(MS + 1_000).toISOString();
/** Its tokens are issued one second before `TIME`. */
const caller: IdentityClaims = {
  subject: "alice",
  issuer: "sallyport",
  groups: [],
  tokenId: "a1",
  issuedAt: NOW,
  expiresAt: NOW + 600,
  acceptedUntil: MS + 600_000,
  claims: new Map([
    ["sid", "s1"],
    ["idp_sub", "p1"],
  ]),
};

interface Example {
  readonly name: string;
  /** A caller whose token is not revoked, and one that lacks the name. */
  readonly other: Partial<IdentityClaims>;
  readonly nameless?: Partial<IdentityClaims>;
  /** The value of its key in the revocation file, if it has one, and values that are refused there. */
  readonly written?: unknown;
  readonly refused?: readonly unknown[];
}

const EXAMPLES = {
  token: {
    name: "a1",
    other: { tokenId: "b2" },
    nameless: { tokenId: undefined },
    written: ["a1"],
    refused: ["a1", [7], [""], ["a\n"]],
  },
  subject: {
    name: "alice",
    other: { subject: "bob" },
    written: { alice: TIME },
    refused: [["alice"], { alice: "yesterday" }, { "": TIME }],
  },
  session: {
    name: "s1",
    other: { claims: new Map([["sid", "s2"]]) },
    nameless: { claims: new Map([["idp_sub", "p1"]]) },
  },
  account: {
    name: "p1",
    other: { claims: new Map([["idp_sub", "p2"]]) },
    nameless: { claims: undefined },
  },
  everything: { name: "", other: { issuedAt: NOW + 1 }, written: TIME, refused: [7, [TIME]] },
} satisfies Record<RevocationKindName, Example>;

const fileOf = (value: unknown): FileContent =>
  new FileContent({
    path: "revoked.yaml",
    bytes: Buffer.from(JSON.stringify(value)),
    readAt: 0,
    stats: { mode: 0, uid: 0, mtimeMs: 0 },
  });

test("every kind of the table is tested", () => {
  expect(Object.keys(EXAMPLES)).toEqual(REVOCATION_KINDS);
});

test("no two kinds share a key, a parameter or an explanation", () => {
  const forms = Object.values(REVOCATION_FORMS);
  for (const values of [
    forms.flatMap(({ fileKey }) => fileKey ?? []),
    forms.map(({ refusal }) => refusal),
    NAMED_REVOCATIONS.map(({ word }) => word),
  ]) {
    expect(new Set(values).size).toBe(values.length);
  }
});

describe.each(REVOCATION_KINDS)("%s", (kind) => {
  const { name, other, nameless, written, refused = [] }: Example = EXAMPLES[kind];
  const { fileKey = "", dated, named, refusal } = REVOCATION_FORMS[kind];
  const revocation: Revocation = {
    kind,
    name,
    until: MS + 600_000,
    ...(dated ? { before: MS + 1_000 } : {}),
  };
  const list = (): RevocationList => {
    const made = new RevocationList();
    made.take({ added: [revocation] });
    return made;
  };

  test("ends the tokens that it names, and no others", () => {
    expect(list().covering(caller)).toBe(kind);
    expect(list().covering({ ...caller, ...other })).toBeUndefined();
    if (nameless !== undefined) expect(list().covering({ ...caller, ...nameless })).toBeUndefined();
  });

  test.runIf(dated)("ends no token that is issued after its time", () => {
    expect(list().covering({ ...caller, issuedAt: NOW + 1 })).toBeUndefined();
    expect(list().covering({ ...caller, issuedAt: undefined })).toBe(kind);
  });

  test("is forgotten when the tokens have expired", () => {
    const made = list();
    made.forget(MS + 599_999);
    expect(made.size).toBe(1);
    made.forget(MS + 600_000);
    made.forget(MS + 600_000);
    expect(made.size).toBe(0);
    expect(made.covering(caller)).toBeUndefined();
  });

  test.runIf(fileKey !== "")("is read from the revocation file", () => {
    const listed = readRevocationFile(fileOf({ [fileKey]: written }));
    const { until: _, ...expected } = revocation;
    expect(listed).toEqual([expected]);
    const made = new RevocationList();
    made.take({ listed });
    expect(made.covering(caller)).toBe(kind);
    for (const value of refused) {
      expect(() => readRevocationFile(fileOf({ [fileKey]: value })), String(value)).toThrow();
    }
  });

  test("survives in the journal, and reaches other replicas and threads", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("journal", linesOf([revocation]));
    expect(readJournal(path).revocations).toEqual([revocation]);
    expect(readEvent(writeRevocation(revocation), MS)).toEqual({ revocation });
    const made = new RevocationList();
    for (const news of list().news()) made.take(news);
    expect(made.covering(caller)).toBe(kind);
  });

  test.runIf(fileKey !== "")("is a parameter of the page, if it names something", async () => {
    const queries: RevocationQuery[] = [];
    const page = revokePage(async (query) => {
      queries.push(query);
      return { revoked: [], kept: true };
    });
    const query = new URLSearchParams(
      named === undefined ? { before: TIME } : { [named.word]: name },
    );
    await page.answer({ query, headers: {} } as Parameters<typeof page.answer>[0]);
    expect([...(queries[0]?.named ?? [])]).toEqual(named === undefined ? [] : [[kind, [name]]]);
  });

  test("is what explain says", () => {
    expect(revocationDetail(kind)).toBe(refusal);
  });
});

test("explain does not guess the kind of a revocation that it does not know", () => {
  expect(revocationDetail(undefined)).toBe("it is revoked");
});
