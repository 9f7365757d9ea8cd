# dpsr for curators: docker build -t dpsr . && docker run --rm -it -v "$PWD":/data dpsr release ratings.csv ...
# Any image with Python 3.11 or newer, its venv module and certificates will do: --build-arg BASE=...
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE constraints.txt ./
COPY src src
RUN python3 -m venv /opt/dpsr && /opt/dpsr/bin/pip install --no-cache-dir -c constraints.txt '.[postgres]'

FROM ${BASE}
COPY --from=build /opt/dpsr /opt/dpsr
ENV PATH="/opt/dpsr/bin:$PATH" NUMBA_CACHE_DIR=/opt/numba
# Compiled now, so that no run waits for it; on another processor it is done again, by whoever runs it.
RUN dpsr demo --out /tmp/demo && rm -r /tmp/demo* && chmod -R a+rwX /opt/numba
# Not root: files in /data belong to whoever --user names.
RUN useradd --create-home curator && mkdir /data && chown curator /data
USER curator
WORKDIR /data
ENTRYPOINT ["dpsr"]
CMD ["--help"]
