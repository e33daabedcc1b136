/** Tokens that are bound to a key of the client: DPoP (RFC 9449). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeJwt } from "jose";
import { type Answer, ask, askLogin, fieldsOf, type Question } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import type { Explanation } from "../../src/core/explanation.ts";
import { byKey } from "../support/compact-token.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { clientKey, proofBy, type ProofParts, withProof } from "../support/proofs.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const ISSUER = "https://issuer.example.com";
const STRICT = "https://strict.example.com";
const pair = signingPair("issuer");
const alice = await clientKey();
const mallory = await clientKey();

const now = (): number => Math.floor(Date.now() / 1000);

const tokenWith = (claims: Readonly<Record<string, unknown>> = {}): Promise<string> =>
  signToken(pair, {
    iss: ISSUER,
    aud: "orders",
    sub: "alice",
    iat: now(),
    exp: now() + 600,
    ...claims,
  });

const token = await tokenWith({ cnf: { jkt: alice.jkt } });
const unbound = await tokenWith();

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const trust = { audience: "orders", algorithms: ["ES256"], jwks: { file: "jwks.json" } };
  gate = await startSallyport({
    target: backend.url,
    files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }) },
    config: {
      routes: [
        { name: "public", path: "/public/", auth: "none", upstream: "app" },
        { name: "keep", path: "/keep/", forwardAuthorization: "keep", upstream: "app" },
        { name: "bound", path: "/bound/", require: { proof: true }, upstream: "app" },
        {
          name: "places",
          path: "/places/",
          upstream: "app",
          tokenFrom: [{ header: "Authorization" }, { cookie: "session" }, { query: "token" }],
        },
        {
          name: "cookies",
          path: "/cookies/",
          upstream: "app",
          tokenFrom: [{ cookie: "session" }],
        },
        { name: "everything", path: "/", upstream: "app" },
      ],
      tokens: {
        errorDescription: true,
        trusted: [
          { ...trust, issuer: ISSUER, proof: "accept" },
          { ...trust, issuer: STRICT, proof: "require" },
        ],
      },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const origin = (): string => `https://127.0.0.1:${gate.port}`;

/** Returns a proof for a path. */
const proofFor = (path: string, parts: Partial<ProofParts> = {}): string =>
  proofBy(alice, { htu: origin() + path, token, ...parts });

function send(path: string, proof?: string, question: Question = {}): Promise<Answer> {
  const headers =
    proof === undefined ? { authorization: `DPoP ${token}` } : withProof(token, proof);
  return ask(gate, path, { ...question, headers: { ...headers, ...question.headers } });
}

const challengesOf = ({ headers }: Answer): string => String(headers["www-authenticate"]);

const DESCRIBED: Readonly<Record<string, string>> = {
  "The token is bound to a key, which is not supported": "sender_constrained",
  "The token is not bound to a key": "unbound",
  "The token is bound to a key, and the request does not prove to have it": "proof_missing",
  "The proof is not valid": "proof_invalid",
  "The proof needs a current nonce": "proof_nonce",
  "The proof was used before": "proof_replayed",
};

/** The status, and why the token was refused. */
function refusalIn(answer: Answer): [status: number, reason: string | undefined] {
  const [, described = ""] = /error_description="([^"]*)"/.exec(challengesOf(answer)) ?? [];
  return [answer.status, DESCRIBED[described]];
}

describe("a bound token", () => {
  it("is accepted with a proof, again and again", async () => {
    for (let i = 0; i < 3; i += 1) expect((await send("/x", proofFor("/x"))).status).toBe(200);
  });

  it("reaches no backend, and neither does its proof", async () => {
    const stripped = echoedBy(await send("/x", proofFor("/x")));
    expect([stripped.header("dpop"), stripped.header("authorization")]).toEqual([
      undefined,
      undefined,
    ]);
    const kept = echoedBy(await send("/keep/", proofFor("/keep/")));
    expect([kept.header("dpop"), kept.header("authorization")]).toEqual([
      undefined,
      `DPoP ${token}`,
    ]);
  });

  it("is refused without a proof", async () => {
    const answer = await send("/x");
    expect(challengesOf(answer)).toMatch(
      /^Bearer realm="sallyport", error="invalid_token".*, DPoP algs="ES256/,
    );
    expect(refusalIn(answer)).toEqual([401, "proof_missing"]);
  });

  it.each([
    ["another method", { htm: "POST" }],
    ["another path", { htu: "https://127.0.0.1/y" }],
    ["another token", { token: unbound }],
    ["no token", { token: undefined }],
    ["another key", { header: { jwk: mallory.jwk } }],
    ["a signature by another key", { signer: byKey(mallory.privateKey) }],
    ["a time that is no number", { claims: { iat: "now" } }],
    ["no jti", { claims: { jti: "" } }],
  ])("is refused with a proof of %s", async (_what, parts) => {
    const answer = await send("/x", proofFor("/x", parts as Partial<ProofParts>));
    expect(challengesOf(answer)).toContain('DPoP algs="ES256 ES384 ES512 EdDSA');
    expect(challengesOf(answer)).toContain('error="invalid_dpop_proof"');
    expect(refusalIn(answer)).toEqual([401, "proof_invalid"]);
  });

  it("is refused with a proof that was used before", async () => {
    const proof = proofFor("/x");
    expect((await send("/x", proof)).status).toBe(200);
    const answer = await send("/x", proof);
    expect(refusalIn(answer)).toEqual([401, "proof_replayed"]);
  });

  it("may be sent whatever the query, and however the URL is spelled", async () => {
    const path = "/a~b%C3%A9";
    const spellings = [
      `${origin()}/a%7eb%c3%a9`,
      `HTTPS://127.0.0.1:${gate.port}/c/../a~b%C3%A9`,
      `${origin()}${path}?q=1#part`,
    ];
    for (const htu of spellings) {
      const answer = await send(`${path}?x=2`, proofFor("", { htu }));
      expect([htu, answer.status]).toEqual([htu, 200]);
    }
  });
});

describe("the clock of a client", () => {
  it("may be wrong if it gets a nonce", async () => {
    const iat = now() - 7_200;
    const first = await send("/x", proofFor("/x", { claims: { iat } }));
    expect(refusalIn(first)).toEqual([401, "proof_nonce"]);
    expect(challengesOf(first)).toContain('error="use_dpop_nonce"');
    const nonce = String(first.headers["dpop-nonce"]);
    const proof = proofFor("/x", { claims: { iat, nonce } });
    expect((await send("/x", proof)).status).toBe(200);
    expect(refusalIn(await send("/x", proof))).toEqual([401, "proof_replayed"]);
  });

  it.each([-61, 7])("must not be %d s away without one", async (seconds) => {
    const answer = await send("/x", proofFor("/x", { claims: { iat: now() + seconds } }));
    expect([answer.status, answer.headers["dpop-nonce"]]).toEqual([401, expect.any(String)]);
  });

  it("does not help with a nonce from elsewhere", async () => {
    const answer = await send("/x", proofFor("/x", { claims: { nonce: "made-up" } }));
    expect(challengesOf(answer)).toContain('error="use_dpop_nonce"');
  });
});

describe("an explanation", () => {
  const explained = async (proof: string): Promise<Explanation> => {
    const query = new URLSearchParams({ url: `https://127.0.0.1:${gate.port}/x` });
    query.append("header", `DPoP: ${proof}`);
    const { body } = await ask({ port: gate.adminPort }, `/-/explain?${query.toString()}`, {
      headers: { authorization: `DPoP ${token}` },
    });
    return JSON.parse(body) as Explanation;
  };
  const stepOf = ({ token: found }: Explanation) =>
    found?.steps.find(({ step }) => step === "proof");

  it("checks the proof, and uses it not up", async () => {
    const proof = proofFor("/x");
    for (let i = 0; i < 2; i += 1) {
      const found = await explained(proof);
      expect(found.verdict.outcome).toBe("forwarded");
      expect(stepOf(found)?.result).toBe("ok");
      expect(found.backend?.headers.removed.map((name) => name.toLowerCase())).toContain("dpop");
    }
    expect((await send("/x", proof)).status).toBe(200);
  });

  it("says what is wrong with it", async () => {
    const found = await explained(proofFor("/y"));
    expect(found.verdict).toMatchObject({
      outcome: "refused",
      status: 401,
      reason: "proof_invalid",
    });
    const detail = '"htu" is not the URL of the request, or no route names its host';
    expect(stepOf(found)).toEqual({ step: "proof", result: "failed", detail });
  });
});

describe("no proof counts elsewhere", () => {
  it.each([
    ["a bearer token", "/x", { authorization: `Bearer ${token}` }],
    ["a cookie", "/places/", { cookie: `session=${token}` }],
    ["the query", `/places/?token=${token}`, {}],
  ])("a bound token as %s", async (_what, path, headers) => {
    const proof = proofFor(path.split("?", 1)[0] ?? "");
    const answer = await ask(gate, path, { headers: { ...headers, dpop: proof } });
    expect(refusalIn(answer)).toEqual([401, "proof_missing"]);
  });

  it("a bound token in a cookie, beside what Authorization has for the application", async () => {
    const sent = (of: string) => {
      const proof = proofBy(alice, { htu: `${origin()}/cookies/`, token: of });
      const headers = { cookie: `session=${of}`, ...withProof("of the application", proof) };
      return ask(gate, "/cookies/", { headers });
    };
    expect(refusalIn(await sent(token))).toEqual([401, "proof_missing"]);
    expect((await sent(unbound)).status).toBe(200);
  });

  it("an unbound token with the scheme DPoP", async () => {
    const proof = proofBy(alice, { htu: `${origin()}/x`, token: unbound });
    const answer = await ask(gate, "/x", { headers: withProof(unbound, proof) });
    expect(refusalIn(answer)).toEqual([401, "unbound"]);
  });

  it("an unbound token where the issuer or the route requires a bound one", async () => {
    const strict = await tokenWith({ iss: STRICT });
    expect((await ask(gate, "/x", { token: strict })).status).toBe(401);
    expect((await ask(gate, "/places/", { headers: { cookie: `session=${strict}` } })).status).toBe(
      401,
    );
    expect(await ask(gate, "/bound/", { token: unbound })).toMatchObject({ status: 401 });
    await until(() =>
      gate.log().some(({ route, reason }) => route === "bound" && reason === "unbound"),
    );
    expect((await send("/bound/", proofFor("/bound/"))).status).toBe(200);
    expect((await ask(gate, "/x", { token: unbound })).status).toBe(200);
  });

  it.each([{ jwk: {} }, { jkt: alice.jkt, kid: "1" }, { jkt: "short" }, "text", {}])(
    "a token with cnf %j",
    async (cnf) => {
      const odd = await tokenWith({ cnf });
      const proof = proofBy(alice, { htu: `${origin()}/x`, token: odd });
      const answer = await ask(gate, "/x", { headers: withProof(odd, proof) });
      expect(refusalIn(answer)).toEqual([401, "sender_constrained"]);
    },
  );

  it("a bound token of our own issuer, which has no proof: accept", async () => {
    expect((await ask(gate, "/x", { token: gate.token })).status).toBe(200);
  });
});

describe("a login with tokens.proof: accept", () => {
  const logIn = (proof?: string) =>
    askLogin(own(), ALICE, proof === undefined ? {} : { dpop: proof });
  const loginProof = (parts: Partial<ProofParts> = {}): string =>
    proofBy(alice, {
      htu: `http://127.0.0.1:${own().port}/api/authenticate`,
      htm: "POST",
      ...parts,
    });
  const own = use({ proof: "accept" });

  it("binds the token to the key of its proof", async () => {
    const answer = await logIn(loginProof());
    expect(answer.status).toBe(200);
    const bound = String(fieldsOf(answer)["token"]);
    expect(decodeJwt(bound)["cnf"]).toEqual({ jkt: alice.jkt });
    const htu = `http://127.0.0.1:${own().port}/x`;
    const proof = proofBy(alice, { htu, token: bound });
    expect((await ask(own(), "/x", { headers: withProof(bound, proof) })).status).toBe(200);
    expect((await ask(own(), "/x", { token: bound })).status).toBe(401);
  });

  it("binds nothing without one", async () => {
    const bearer = String(fieldsOf(await logIn())["token"]);
    expect(decodeJwt(bearer)).not.toHaveProperty("cnf");
    expect((await ask(own(), "/x", { token: bearer })).status).toBe(200);
  });

  it.each([
    ["for another method", { htm: "GET" }, '"htm" is not the method of the request'],
    ["for another URL", { htu: "https://elsewhere.example.com/" }, '"htu" is not the URL'],
    ["with another signature", { signer: byKey(mallory.privateKey) }, "its signature is wrong"],
  ])("is 400 with a proof %s", async (_what, parts, why) => {
    const answer = await logIn(loginProof(parts));
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)["message"]).toContain(`The DPoP proof is not valid: ${why}`);
  });

  it("is 400 with a proof that was used before, and says which nonce a wrong clock needs", async () => {
    const proof = loginProof();
    expect((await logIn(proof)).status).toBe(200);
    expect(fieldsOf(await logIn(proof))["message"]).toContain("it was used before");
    const late = await logIn(loginProof({ claims: { iat: 1 } }));
    expect(late.status).toBe(400);
    const nonce = String(late.headers["dpop-nonce"]);
    expect((await logIn(loginProof({ claims: { iat: 1, nonce } }))).status).toBe(200);
  });

  it("with a wrong password uses no proof up: strangers cannot fill the memory for proofs", async () => {
    const headers = { dpop: loginProof() };
    const wrong = await askLogin(own(), { ...ALICE, password: "wrong" }, headers);
    expect(wrong.status).toBe(401);
    expect((await askLogin(own(), ALICE, headers)).status).toBe(200);
    expect((await askLogin(own(), ALICE, headers)).status).toBe(400);
  });

  it("tells programs what is accepted", async () => {
    const answer = await ask(own(), "/.well-known/oauth-protected-resource");
    expect(fieldsOf(answer)).toMatchObject({
      dpop_signing_alg_values_supported: expect.arrayContaining(["ES256", "EdDSA"]),
      dpop_bound_access_tokens_required: false,
      tls_client_certificate_bound_access_tokens: false,
    });
  });

  it("lets scripts of other origins read the nonce", async () => {
    const answer = await ask(own(), "/x", { headers: { origin: "https://app.example.com" } });
    expect(answer.headers["access-control-expose-headers"]).toContain("DPoP-Nonce");
    expect(answer.headers["www-authenticate"]).toMatch(
      /^Bearer .*, DPoP algs="[^"]+", resource_metadata=/,
    );
  });
});

describe("tokens.proof: require", () => {
  const own = use({ proof: "require" });

  it("a login without a proof is 400", async () => {
    const answer = await askLogin(own(), ALICE);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)["message"]).toBe(
      "The DPoP proof is not valid: there is no DPoP header",
    );
  });
});

/** Starts a gate with these tokens for the enclosing `describe`. */
function use(tokens: object): () => Sallyport {
  let own: Sallyport;
  beforeAll(async () => {
    own = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: {
        tokens,
        metadata: {},
        cors: { origins: ["https://app.example.com"] },
        server: { tls: "off" },
      },
    });
  });
  afterAll(() => own.close());
  return () => own;
}
