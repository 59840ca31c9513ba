// Shared by both pages: requests with the token, and elements built without markup in strings.
export function token() {
  return sessionStorage.getItem("gpurest-token") || "";
}

export function authorization() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

// The JSON of the answer, or an Error with the service's error text.
export async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json", ...authorization() }, cache: "no-store" });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw new Error(`${answer.status} ${body.code || ""}: ${body.detail || answer.statusText}`);
  }
  return body;
}

// element("td", {className: "number"}, "text", other elements…)
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties || {});
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function replace(id, ...children) {
  document.getElementById(id).replaceChildren(...children);
}

export function bytes(n) {
  if (n === null || n === undefined) {
    return "unlimited";
  }
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit ? n.toFixed(1) : n} ${units[unit]}`;
}

// The token is kept until the tab closes.
export function tokenForm(onChange) {
  const form = document.getElementById("token-form");
  const field = document.getElementById("token");
  field.value = token();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("gpurest-token", field.value.trim());
    onChange();
  });
}
