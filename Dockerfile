# dpsr for curators: docker build -t dpsr . && docker run --rm -it -v "$PWD":/data dpsr release ratings.csv ...
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/dpsr && /opt/dpsr/bin/pip install --no-cache-dir -c constraints.txt '.[postgres]'

FROM python:3.12-slim
COPY --from=build /opt/dpsr /opt/dpsr
ENV PATH="/opt/dpsr/bin:$PATH" NUMBA_CACHE_DIR=/tmp/numba
# Not root: files in /data belong to whoever --user names.
RUN useradd --create-home curator && mkdir /data && chown curator /data
USER curator
WORKDIR /data
ENTRYPOINT ["dpsr"]
CMD ["--help"]
