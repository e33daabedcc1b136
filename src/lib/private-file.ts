/** Of what `stat` says of a file, following links. */
interface Ownership {
  readonly mode: number;
  readonly uid: number;
}

/**
 * Whether a file that should be private is open to others. A file of our own is private to us; one of somebody else's can
 * only be read through its group, as in a Kubernetes volume with `fsGroup` (`root:65532`, 0440), and is private to that.
 */
export function isExposed({ mode, uid }: Ownership): boolean {
  const own = process.getuid?.();
  if (own === undefined) return false;
  return (mode & (uid === own ? 0o077 : 0o007)) !== 0;
}
