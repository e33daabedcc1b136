/**
 * Maximum size of a key set in bytes. Providers publish two to ten keys; 100 with certificates fit. Refusing hostile
 * JSON of this size takes 40 ms.
 */
const LARGEST_BODY = 131_072;

/**
 * Fetches the text of a key set: the body of a 200. Refuses redirects, since they could lead from a trusted address to
 * another.
 *
 * @param signal aborts the request.
 * @throws the system's error, or an `Error` that says what is wrong with the response.
 */
export async function fetchKeySet(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    redirect: "error",
    signal,
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > LARGEST_BODY) throw new Error(`larger than ${LARGEST_BODY} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
