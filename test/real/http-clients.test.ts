/**
 * HTTP libraries of other languages log in, send requests, upload, stream and get refusals, over HTTP/1.1 and HTTP/2.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { missing, runProgram } from "../support/program.ts";
import { ALICE, startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

/** The Python that has Debian's packages; PATH may list another one first. */
const DEBIANS_PYTHON = "/usr/bin/python3";

/** Each client prints a line: the protocol, the statuses of five requests, and the length of its download. */
const REQUESTS = `
login = client.post(base + "/api/authenticate", json={"username": "alice", "password": sys.argv[3]})
token = login.json()["token"]
headers = {"Authorization": "Bearer " + token}
answers = [login, client.get(base + "/orders?a=1", headers=headers),
  client.post(base + "/up", headers=headers, data=b"x" * 300000),
  client.post(base + "/chunked", headers=headers, data=chunks()), client.get(base + "/orders")]
big = client.get(base + "/big?bytes=3000000", headers=headers)
print(protocol(big), *[a.status_code for a in answers], len(big.content))
`;
const CHUNKS = `
def chunks():
    for _ in range(30): yield b"y" * 1000
`;
const PYTHON: Readonly<Record<string, string>> = {
  requests: `import sys, requests
base, ca = sys.argv[1:3]
client = requests.Session(); client.verify = ca; client.trust_env = False
def protocol(answer): return {10: "HTTP/1.0", 11: "HTTP/1.1"}[answer.raw.version]
${CHUNKS}${REQUESTS}`,
  "httpx over HTTP/1.1": httpx("http1=True"),
  "httpx over HTTP/2": httpx("http2=True"),
};

function httpx(version: string): string {
  return `import ssl, sys, httpx
base, ca = sys.argv[1:3]
client = httpx.Client(${version}, verify=ssl.create_default_context(cafile=ca), trust_env=False)
def protocol(answer): return answer.http_version
${CHUNKS}${REQUESTS.replaceAll("data=", "content=")}`;
}

const GO = `package main

import ("bytes"; "crypto/tls"; "crypto/x509"; "encoding/json"; "fmt"; "io"; "net/http"; "os"; "strings")

func main() {
	base, password, version := os.Args[1], os.Args[3], os.Args[4]
	pem, _ := os.ReadFile(os.Args[2])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: version == "2"}
	if version == "1" { transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{} }
	client := &http.Client{Transport: transport}
	token := ""
	ask := func(method, path string, body io.Reader) (string, int, []byte) {
		request, err := http.NewRequest(method, base+path, body)
		if err != nil { panic(err) }
		if path == "/api/authenticate" { request.Header.Set("Content-Type", "application/json") }
		if token != "" { request.Header.Set("Authorization", "Bearer "+token) }
		answer, err := client.Do(request)
		if err != nil { panic(err) }
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		if err != nil { panic(err) }
		return answer.Proto, answer.StatusCode, content
	}
	credentials, _ := json.Marshal(map[string]string{"username": "alice", "password": password})
	_, refused, _ := ask("GET", "/orders", nil)
	_, login, content := ask("POST", "/api/authenticate", bytes.NewReader(credentials))
	var answer struct{ Token string }
	if err := json.Unmarshal(content, &answer); err != nil { panic(err) }
	token = answer.Token
	_, orders, _ := ask("GET", "/orders?a=1", nil)
	_, up, _ := ask("POST", "/up", strings.NewReader(strings.Repeat("x", 300000)))
	_, chunked, _ := ask("POST", "/chunked", io.MultiReader(strings.NewReader(strings.Repeat("y", 30000))))
	proto, _, big := ask("GET", "/big?bytes=3000000", nil)
	fmt.Println(proto, login, orders, up, chunked, refused, len(big))
}
`;

describe("HTTP libraries", () => {
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let gate: Sallyport;
  let directory: TemporaryDirectory;
  let where: string[];
  beforeAll(async () => {
    backend = stack.use(await startEchoBackend());
    directory = stack.use(await temporaryDirectory());
    gate = stack.use(
      await startSallyport({ target: backend.url, config: { server: { http2: true } } }),
    );
    where = [`https://localhost:${gate.port}`, await directory.write("ca.pem", gate.ca ?? "")];
  });
  afterAll(() => stack.disposeAsync());

  /** Returns the body lengths of the two uploads at the backend. */
  const uploads = () =>
    backend.requests
      .filter(({ url }) => url === "/up" || url === "/chunked")
      .slice(-2)
      .map(({ bodyLength }) => bodyLength);
  const expected = (protocol: string): string => `${protocol} 200 200 200 200 401 3000000\n`;

  it.each([
    ["requests", "HTTP/1.1"],
    ["httpx over HTTP/1.1", "HTTP/1.1"],
    ["httpx over HTTP/2", "HTTP/2"],
  ])("Python's %s", async (name, protocol) => {
    const file = await directory.write("client.py", PYTHON[name] ?? "");
    const { out, err } = await runProgram(
      DEBIANS_PYTHON,
      [file, ...where, ALICE.password],
      "",
      60_000,
    );
    expect(err).toBe("");
    expect(out).toBe(expected(protocol));
    expect(uploads()).toEqual([300_000, 30_000]);
  });

  describe.skipIf(missing("go") !== undefined)(`Go's net/http ${missing("go") ?? ""}`, () => {
    let program = "";
    beforeAll(async () => {
      const file = await directory.write("client.go", GO);
      program = `${directory.path}/client`;
      const env = [`GOCACHE=${directory.path}/go-cache`, `HOME=${directory.path}`, "CGO_ENABLED=0"];
      const built = await runProgram(
        "env",
        [...env, "go", "build", "-o", program, file],
        "",
        110_000,
      );
      expect(built.err).toBe("");
    });

    it.each([
      ["1", "HTTP/1.1"],
      ["2", "HTTP/2.0"],
    ])("over HTTP/%s", async (version, protocol) => {
      const { out, err } = await runProgram(program, [...where, ALICE.password, version]);
      expect(err).toBe("");
      expect(out).toBe(expected(protocol));
      expect(uploads()).toEqual([300_000, 30_000]);
    });
  });

  it("curl over HTTP/1.1 and HTTP/2", async () => {
    for (const [flag, version] of [
      ["--http1.1", "1.1"],
      ["--http2", "2"],
    ] as const) {
      const { out } = await runProgram("curl", [
        ...["--silent", "--noproxy", "*", "--cacert", where[1] ?? "", flag],
        ...["--header", `Authorization: Bearer ${gate.token}`, "--data-binary", "a=1"],
        ...[
          "--output",
          "/dev/null",
          "--write-out",
          "%{http_version} %{http_code}",
          `${where[0]}/up`,
        ],
      ]);
      expect(out).toBe(`${version} 200`);
    }
  });
});
