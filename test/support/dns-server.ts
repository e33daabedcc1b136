/** A DNS server for one test, on the loopback. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decode, encode, type StringAnswer } from "dns-packet";

/** The answer for each name: addresses of both families, a server failure, or no answer at all. */
type Zone = Record<string, readonly string[] | "SERVFAIL" | "silent">;

interface DnsServer extends AsyncDisposable {
  /** For `resolve.servers`. */
  readonly address: string;
  /** May be changed at any time. */
  readonly zone: Zone;
  /** The number of questions so far. */
  readonly questions: number;
}

/** @param ttl of all answers, in seconds. A name that is not in the zone does not exist. */
export async function startDnsServer(zone: Zone, ttl = 60): Promise<DnsServer> {
  const socket = createSocket("udp4");
  let questions = 0;
  socket.on("message", (message, { port, address }) => {
    const { id, questions: asked = [] } = decode(message);
    questions += 1;
    const [first] = asked;
    if (first === undefined) return;
    const { name, type } = first;
    const found = zone[name.toLowerCase()];
    if (found === "silent") return;
    const list = typeof found === "string" ? [] : (found ?? []);
    const wanted = type === "AAAA" ? ":" : ".";
    const answers = list
      .filter((each) => each.includes(wanted))
      .map((data): StringAnswer => ({ type: type === "AAAA" ? "AAAA" : "A", name, ttl, data }));
    const code = found === "SERVFAIL" ? 2 : found === undefined ? 3 : 0;
    const flags = 0x0180 | code;
    socket.send(
      encode({
        type: "response",
        ...(id === undefined ? {} : { id }),
        flags,
        questions: asked,
        answers,
      }),
      port,
      address,
    );
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    zone,
    get questions() {
      return questions;
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      await once(socket, "close");
    },
  };
}
