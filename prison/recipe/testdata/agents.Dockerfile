FROM debian:12
USER 0
SHELL ["/bin/sh", "-ec"]
RUN command -v apt-get >/dev/null || { echo "the base image has no apt-get: it must be a Debian or Ubuntu" >&2; exit 1; }
RUN export DEBIAN_FRONTEND=noninteractive; apt-get update; \
    apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io \
    bash ca-certificates git nodejs npm; \
    apt-get clean; rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old
RUN git --version
RUN npm install --global --prefix /usr/local --no-audit --no-fund @openai/codex@0.169.0; rm -rf /root/.npm; \
    mkdir /tmp/home; HOME=/tmp/home codex --version 2>&1 | grep -F 0.169.0; rm -rf /tmp/home
USER 65532:65532
WORKDIR /workspace
