/** A token of HTTP, such as the name of a header (RFC 9110 §5.6.2). */
export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The name of a method. */
export const METHOD = /^[A-Z]+(?:-[A-Z]+)*$/;
