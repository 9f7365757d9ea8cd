"""Keep Spark's classes for the Java processes of tests: each would unpack, check and link thousands of them by itself.

Java can write down, when it ends, the classes that it has loaded, in the form in which it holds them. So a small
session does a little of what tests do, once, before the tests (`make kernels`). Where Java or Spark is another one by
the time the archive is read, Java leaves it aside; tests only take longer.
"""

import shutil
import tempfile
from pathlib import Path

from small_ratings import write_csv
from spark_cases import ARCHIVE, JAVA, on_spark, session_of, small

from dpsr import DPSR, Scale
from dpsr.data.spark.files import spark_table_of_file
from dpsr.engine.spark.secrecy import ENCRYPTED


def archive(path):
    """A file and a frame are read, and a model is fitted; then wait for Java's end, when it writes.

    Half an archive would end every Java that reads it, so it gets its name when it is whole.
    """
    part = path.with_suffix(".part")
    java = f'{JAVA} -Xlog:disable "-XX:ArchiveClassesAtExit={part}"'
    with session_of("local[2]", **ENCRYPTED, **{"spark.driver.extraJavaOptions": java}) as session:
        with tempfile.TemporaryDirectory() as folder:
            spark_table_of_file(session, write_csv(Path(folder) / "ratings.csv"), scale=Scale(1, 5))
        DPSR(5.0, random_state=0).fit_table(on_spark(session, small()))
        program = session.sparkContext._gateway.proc
    program.stdin.close()
    if program.wait() == 0 and part.exists():
        part.replace(path)


if __name__ == "__main__" and shutil.which("java"):
    archive(ARCHIVE)
