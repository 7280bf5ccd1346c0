// Browsers start no Worker for a page that was opened from a folder (file://). The search of the theme wants one:
// there it runs in a hidden frame instead, which gets the same messages. Served over HTTP, pages have real Workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.onmessage = null;
      this.ready = new Promise((resolve, reject) => {
        document.body.appendChild(this.frame);
        const inside = this.frame.contentWindow;
        inside.postMessage = (data) => this.answer(data);
        inside.importScripts = () => undefined;
        const script = inside.document.createElement("script");
        script.src = String(url);
        script.onload = resolve;
        script.onerror = reject;
        inside.document.body.appendChild(script);
      });
    }

    answer(data) {
      setTimeout(() => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      });
    }

    async postMessage(data) {
      await this.ready;
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
