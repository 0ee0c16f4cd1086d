// Asks the browser for a passkey where a form wants one. Gets a page that may change again every few seconds, and puts the new text
// in the place of the old one. Without this script a page shows what there was when it was got.
"use strict";
document.querySelectorAll("form[data-passkey]").forEach((form) => form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const told = form.querySelector("[role=alert]"), what = form.dataset.passkey, kind = PublicKeyCredential;
  async function step(name, said) {
    const body = new URLSearchParams(new FormData(form));
    if (said) body.set("said", JSON.stringify(said));
    const answer = await fetch("/ui/passkey/" + name, {method: "POST", body, credentials: "same-origin", redirect: "error"});
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }
  told.textContent = "";
  try {
    if (what === "add") {
      const publicKey = kind.parseCreationOptionsFromJSON((await step("add")).publicKey);
      await step("added", await navigator.credentials.create({publicKey}));
    } else {
      const publicKey = kind.parseRequestOptionsFromJSON((await step("use")).publicKey);
      await step("used", await navigator.credentials.get({publicKey}));
    }
    location.reload();
  } catch (fault) {
    told.textContent = fault.message;
  }
}));
(() => {
  if (!("live" in document.body.dataset)) return;
  const shown = () => Number(document.getElementById("waiting").textContent.match(/\d+/) || 0);

  const log = () => document.getElementById("log"), toEnd = (l) => { if (l) l.scrollTop = l.scrollHeight; };
  toEnd(log());

  const last = {};
  for (const part of ["live", "waiting"]) last[part] = document.getElementById(part).outerHTML;

  function replace(page) {
    const at = document.activeElement, id = at && at.id, picked = getSelection();
    const old = log(), top = old && old.scrollTop + old.clientHeight < old.scrollHeight - 4 && old.scrollTop;
    for (const part of ["live", "waiting"]) {
      const now = document.getElementById(part), next = page.getElementById(part);
      const typing = now && now.contains(at) && /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName);
      const pointing = now && now.querySelector("button:active, .ask button:hover"); // which must not become another call's
      const copying = now && !picked.isCollapsed && now.contains(picked.anchorNode);
      if (!now || !next || typing || pointing || copying || next.outerHTML === last[part]) continue;
      last[part] = next.outerHTML;
      now.querySelectorAll("details[open]").forEach((open) => {
        const same = page.getElementById(open.id);
        if (same) same.open = true;
      });
      now.replaceWith(document.adoptNode(next));
    }
    if (top === false) toEnd(log());
    else if (top && log()) log().scrollTop = top;
    document.title = page.title;
    if (id && document.activeElement !== at) {
      const same = document.getElementById(id);
      if (same) same.focus({preventScroll: true});
    }
    if (!page.querySelector("#main form")) { // it was settled elsewhere
      document.querySelectorAll("#main form").forEach((form) => form.remove());
    }
  }

  async function refresh() {
    const before = shown();
    try {
      const answer = await fetch(location.href, {credentials: "same-origin", redirect: "error"});
      if (answer.status === 401) { location.reload(); return; }
      if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
      if (shown() > before) document.getElementById("news").textContent = shown() + " calls wait for approval";
    } catch { /* the next time tries again */ }
    setTimeout(refresh, document.hidden ? 15000 : 2000);
  }
  setTimeout(refresh, 2000);
})();
