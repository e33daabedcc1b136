import { open } from "node:fs/promises";
import { join } from "node:path";
import { LARGE, startBackend } from "../backends/nginx.ts";
import { startSink } from "../backends/sink.ts";
import { peakMemory, usageOf } from "../machine/accounting.ts";
import { run } from "../machine/children.ts";
import { needProgram } from "../machine/programs.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer, Running } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import { checkRefusals } from "./correctness.ts";
import { type Contender, type Figures, inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";

type Direction = "download" | "upload";

/** Requests of one measurement, one after the other: the CPU is counted in hundredths of a second. */
const REQUESTS = 4;
/** Measurements that do not count: V8 compiles meanwhile. */
const WARM_UPS = 3;

/** Measures requests of 256 MiB with curl: down and up, over plain HTTP and TLS. */
export async function measureTransfers(
  bench: Bench,
  scenario: string,
  peers: readonly PeerName[],
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const tls of [false, true]) {
    for (const direction of ["download", "upload"] as const) {
      rows.push(...(await measureDirection(bench, scenario, peers, direction, tls)));
    }
  }
  return rows;
}

async function measureDirection(
  { setting, peers: present, rounds, say }: Bench,
  scenario: string,
  peers: readonly PeerName[],
  direction: Direction,
  tls: boolean,
): Promise<readonly Row[]> {
  const variant = `${tls ? "TLS" : "plain"} ${direction}`;
  await using ends = new AsyncDisposableStack();
  const started = direction === "download" ? startBackend(setting) : startSink();
  const { port: backend } = ends.use(await started);
  const file = join(setting.directory, "upload.bin");
  await using upload = await open(file, "w");
  await upload.truncate(LARGE.bytes);
  const contenders: Contender[] = [];
  const voids: Row[] = [];
  for (const name of peers.filter((name) => present.includes(name))) {
    const peer: Peer = PEERS[name];
    try {
      const running = ends.use(await peer.start(setting, { backend, tls, cores: "own" }));
      await checkRefusals(setting, peer, running, { tls });
      const token = await setting.keys[peer.checks ?? "ES256"].sign();
      const what = direction === "download" ? downloading : uploading(file);
      const measure = (): Promise<Figures> => transfer(running, tls, token, what);
      for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await measure();
      contenders.push({ peer: name, variant, measure });
    } catch (error) {
      voids.push(voidRow(scenario, variant, name, messageOf(error)));
    }
  }
  return [...(await inTurns(scenario, contenders, rounds, say)), ...voids];
}

interface Transferring {
  readonly path: string;
  readonly flags: readonly string[];
  /** The count of curl that must equal the full size. */
  readonly counted: "size_download" | "size_upload";
}

const downloading: Transferring = { path: LARGE.path, flags: [], counted: "size_download" };

function uploading(file: string): Transferring {
  const flags = ["-X", "POST", "-T", file, "-H", "Expect:"];
  return { path: "/upload", flags, counted: "size_upload" };
}

async function transfer(
  { pid, port }: Running,
  tls: boolean,
  token: string,
  { path, flags, counted }: Transferring,
): Promise<Figures> {
  const url = `${tls ? "https" : "http"}://127.0.0.1:${port}${path}`;
  const format = `%{http_code} %{${counted}} %{time_total}\n`;
  const common = ["-s", "-k", "--http1.1", "-w", format, "-H", `Authorization: Bearer ${token}`];
  const each = ["-o", "/dev/null", ...flags, url];
  const before = usageOf(pid);
  const sent = run(
    needProgram("curl"),
    [...common, ...Array.from({ length: REQUESTS }, () => each).flat()],
    120_000,
  );
  const { result, peakBytes } = await peakMemory(pid, sent);
  const after = usageOf(pid);
  let [moved, took] = [0, 0];
  for (const line of result.trim().split("\n")) {
    const [status, bytes = 0, seconds = 0] = line.split(" ").map(Number);
    if (status !== 200 || bytes !== LARGE.bytes) {
      throw new Error(`moved ${bytes} of ${LARGE.bytes} bytes with status ${status}`);
    }
    moved += bytes;
    took += seconds;
  }
  return {
    cpuPerGb: (after.cpuSeconds - before.cpuSeconds) / (moved / 1e9),
    megabytesPerSecond: moved / 1e6 / took,
    resident: peakBytes / 1e6,
  };
}
