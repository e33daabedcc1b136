import {
  bad,
  type Examined,
  type Finding,
  type FindingGroup,
  good,
  skipped,
  warning,
} from "./finding.ts";
import {
  type Holder,
  holderOf,
  type ListenAddress,
  readiness,
  servesAsSallyport,
} from "./holder.ts";

type Key = "server.listen" | "admin.listen";

/** Checks whether each port is free or in use by a Sallyport with this configuration, and whether that is ready. */
export async function checkListeners({ snapshot, timeoutMs }: Examined): Promise<FindingGroup[]> {
  const { server, admin } = snapshot.configuration;
  const { listen, tls } = server;
  const adminPlace = admin === "off" ? undefined : admin.listen;
  const ready = adminPlace === undefined ? undefined : await readiness(adminPlace, timeoutMs);
  const runs = typeof ready === "number";
  // If the listener requires client certificates, we have none to present, so the admin listener decides.
  const closed = tls.mode !== "off" && tls.clientCertificates?.mode === "required";
  const [main, other] = await Promise.all([
    holderUnlessAny(listen, () =>
      closed ? runs : servesAsSallyport(listen, tls.mode !== "off", timeoutMs),
    ),
    adminPlace && holderUnlessAny(adminPlace, () => runs),
  ]);
  const findings = [
    portFinding("server.listen", listen, main, other),
    adminPlace === undefined
      ? skipped("admin is off: readiness cannot be checked")
      : portFinding("admin.listen", adminPlace, other, main),
    readyFinding(ready),
  ];
  return [{ name: "listeners", findings }];
}

/** Returns undefined for port 0, which means any port. */
async function holderUnlessAny(
  address: ListenAddress,
  isSallyport: () => boolean | Promise<boolean>,
): Promise<Holder | undefined> {
  return address.port === 0 ? undefined : holderOf(address, isSallyport);
}

/** @param beside the holder of the other port: a Sallyport with this configuration would hold both. */
function portFinding(
  key: Key,
  { host, port }: ListenAddress,
  holder: Holder | undefined,
  beside: Holder | undefined,
): Finding {
  const where = `${key}: ${host.includes(":") ? `[${host}]` : host}:${port}`;
  const elsewhere = `choose another with ${key}`;
  switch (holder?.kind) {
    case undefined:
      return good(`${where} uses any free port`);
    case "nobody":
      return good(`${where} is free`);
    case "other":
      return bad(`${where} is taken by another program`, elsewhere);
    case "none can":
      return bad(
        `${where} cannot be listened on (${holder.code})`,
        "choose another address or port",
      );
    case "sallyport":
      return beside === undefined || beside.kind === "sallyport"
        ? good(`${where} is taken, and a Sallyport is running`)
        : bad(`${where} is taken by a Sallyport with another configuration`, elsewhere);
  }
}

function readyFinding(ready: number | string | undefined): Finding {
  switch (ready) {
    case undefined:
      return skipped("readiness is unknown");
    case 200:
      return good("a running Sallyport is ready");
    case 503:
      return warning("a running Sallyport is not ready", "its /readyz?verbose shows why");
    default:
      return skipped(`no Sallyport runs here (${ready})`);
  }
}
