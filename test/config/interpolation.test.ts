import { describe, expect, test } from "vitest";
import { faultsOf, load, problemsOf, SMALLEST } from "./configuration-file.ts";

const issuer = (text: string): string => `${SMALLEST}tokens:\n  issuer: ${text}\n`;

describe("a reference", () => {
  test.each([
    ["${NAME}", "value"],
    ["a-${NAME}-b${NAME}", "a-value-bvalue"],
    ["${EMPTY:-fallback}", "fallback"],
    ["${MISSING:-fallback with spaces}", "fallback with spaces"],
    ["${NAME:-fallback}", "value"],
    ["${NAME:?is needed}", "value"],
    ["${file:issuer.txt}", "from a file"],
    ["$5 and $NAME", "$5 and $NAME"],
    [
      "'$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA'",
      "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA",
    ],
    ["${NESTED}", "${NAME}"],
  ])("%s becomes %s", async (text, expected) => {
    const { configuration } = await load(issuer(text), {
      env: { NAME: "value", EMPTY: "", NESTED: "${NAME}" },
      files: { "issuer.txt": "from a file\n" },
    });
    expect(configuration.tokens.issuer).toBe(expected);
  });

  test.each([
    "${MISSING}",
    "${MISSING:?it is needed}",
    "${EMPTY:?}",
    "${a b}",
    "${}",
    "${NAME",
    "${file:none.txt}",
  ])("%s is refused once, with its position", async (text) => {
    expect(await faultsOf(issuer(`"${text}"`), { env: { EMPTY: "" } })).toEqual([
      "4:11 tokens.issuer",
    ]);
  });

  test("reports the given reason", async () => {
    const [problem] = await problemsOf(issuer('"${MISSING:?ask the platform team}"'));
    expect(problem?.message).toContain("ask the platform team");
  });

  test("cannot add keys, whatever its value", async () => {
    const evil = 'x"\n  algorithm: HS256\nlog: { level: debug }\n# {[';
    const problems = await problemsOf(issuer("${EVIL}"), { env: { EVIL: evil } });
    expect(problems.map(({ message }) => message.split(" ")[0])).toEqual(["tokens.issuer"]);
    const { configuration } = await load(issuer("${EVIL}"), {
      env: { EVIL: "{ a: 1 }, [b]: *c #" },
    });
    expect(configuration.tokens.issuer).toBe("{ a: 1 }, [b]: *c #");
    expect(configuration.tokens.algorithm).toBe("ES256");
  });

  test("does not have its value repeated in an error", async () => {
    const problems = await problemsOf(`${SMALLEST}log: { level: "\${SECRET}" }\n`, {
      env: { SECRET: "hunter2" },
    });
    expect(problems).toHaveLength(1);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });

  test("becomes a number or a boolean if it is the entire scalar and one is expected, else text", async () => {
    const text = `server: { workers: "\${N}", tls: { selfSigned: "\${YES}" } }
upstreams: { app: { targets: ["http://h"] } }
tokens: { issuer: "\${N}" }
`;
    const { configuration } = await load(text, { env: { N: "4", YES: "true" } });
    expect(configuration.server.workers).toBe(4);
    expect(configuration.server.tls).toEqual({ mode: "selfSigned" });
    expect(configuration.tokens.issuer).toBe("4");
  });

  test("is not resolved if its value is overridden", async () => {
    const { configuration } = await load(issuer("${MISSING}"), {
      overrides: { "tokens.issuer": "flag" },
    });
    expect(configuration.tokens.issuer).toBe("flag");
  });
});

test("in quotes is not a number", async () => {
  expect(
    await faultsOf(
      'server: { tls: off, workers: "4" }\nupstreams: { app: { targets: ["http://h"] } }',
    ),
  ).toEqual(["1:30 server.workers"]);
});
