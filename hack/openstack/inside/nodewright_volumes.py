"""A Cinder driver whose volumes are records: there is nothing behind them, as there is no guest to read them."""

from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class Driver(driver.VolumeDriver):
    VERSION = "1.0"

    def do_setup(self, context):
        pass

    def check_for_setup_error(self):
        pass

    def create_volume(self, volume):
        pass

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """An image is on a volume as soon as somebody says so."""
        return {}, True

    def delete_volume(self, volume):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {"driver_volume_type": "nothing", "data": {"access_mode": "rw"}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    def _update_volume_stats(self):
        self._stats = {
            "volume_backend_name": "nothing",
            "vendor_name": "nodewright",
            "driver_version": self.VERSION,
            "storage_protocol": "nothing",
            "total_capacity_gb": 100_000,
            "free_capacity_gb": 100_000,
            "reserved_percentage": 0,
        }
